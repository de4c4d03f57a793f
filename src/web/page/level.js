import { button, h } from './dom.js'
import { findLevelLanguage } from './level-language.js'
import { describeError, texts } from './texts.js'

/** Creates the screen that asks the user to choose a level. */
export async function levelScreen({ courtside, go, user }) {
  const levels = await courtside.gameLevels()
  const error = h('p', { class: 'error', role: 'alert', id: 'level-error' })
  const save = h('button', { type: 'submit', class: 'primary' }, texts.save)
  const createChoice = level =>
    h(
      'label',
      { class: 'level' },
      h('input', { type: 'radio', name: 'level', value: String(level.id), checked: level.id === user.game_level?.id }),
      h('span', { lang: findLevelLanguage(level) }, h('strong', {}, level.name), h('span', {}, level.description)),
    )
  const form = h(
    'form',
    { novalidate: true },
    h('fieldset', { 'aria-label': texts.levels, 'aria-describedby': error.id }, levels.map(createChoice)),
    error,
    save,
  )

  form.addEventListener('submit', async event => {
    event.preventDefault()
    const chosen = new FormData(form).get('level')
    error.textContent = chosen === null ? texts.levelNeeded : ''
    if (chosen === null) return form.querySelector('input').focus()
    save.setAttribute('aria-disabled', 'true')
    try {
      go('home', { user: await courtside.assessLevel(Number(chosen)) })
    } catch (thrown) {
      error.textContent = describeError(thrown)
      save.setAttribute('aria-disabled', 'false')
    }
  })

  return [
    user.game_level && button('link', `← ${texts.back}`, () => go('home', { user })),
    h('h1', {}, texts.levelTitle),
    h('p', { class: 'lead' }, texts.levelLead),
    form,
  ]
}
