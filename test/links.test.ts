import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildLink } from '../src/reach/links.ts'

const links = {
  template: 'https://app.example/games/{game_id}?score={score_id}',
  app: 'https://app.example',
  public: 'https://courtside.example',
}

test('a link comes from LINK_TEMPLATE, otherwise from APP_URL, otherwise from PUBLIC_URL', () => {
  const data = { game_id: 12, score_id: 3 }
  assert.equal(buildLink(links, data), 'https://app.example/games/12?score=3')
  assert.equal(buildLink({ ...links, template: undefined }, data), 'https://app.example')
  assert.equal(buildLink({ ...links, template: undefined, app: undefined }, data), 'https://courtside.example')
  assert.equal(buildLink({ template: undefined, app: undefined, public: undefined }, data), undefined)
})

test('a notification without a value of the template gets the link without the template', () => {
  assert.equal(buildLink(links, { game_id: 12 }), 'https://app.example')
  assert.equal(buildLink(links, { game_id: 12, score_id: null }), 'https://app.example')
  assert.equal(buildLink({ ...links, template: 'https://app.example/{constructor}' }, {}), 'https://app.example')
})

test('without another setting, a notification without a value of the template gets a link to the host', () => {
  const only = { template: 'https://app.example:8443/{game_id}/{score_id}', app: undefined, public: undefined }
  assert.equal(buildLink(only, { game_id: 12 }), 'https://app.example:8443')
  assert.equal(buildLink(only, { game_id: 12, score_id: 3 }), 'https://app.example:8443/12/3')
})

test('a value is encoded, so it cannot leave its place in the URL', () => {
  const template = 'https://app.example/{game_id}/{starts_at}'
  const data = { game_id: '../a?b#c', starts_at: '2026-01-17T18:00:00+01:00' }
  assert.equal(
    buildLink({ ...links, template }, data),
    'https://app.example/..%2Fa%3Fb%23c/2026-01-17T18%3A00%3A00%2B01%3A00',
  )
})
