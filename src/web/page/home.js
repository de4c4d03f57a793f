import { createDeletion } from './deletion.js'
import { button, h } from './dom.js'
import { findLevelLanguage } from './level-language.js'
import { language, texts } from './texts.js'

/** Creates the screen with the user's level, profile and account. */
export function homeScreen({ courtside, go, user }) {
  const since = new Date(user.created_at).toLocaleDateString(language, { dateStyle: 'long' })
  // The page cannot know who else uses this computer, so forgetting the account is the default.
  const shared = h('input', { type: 'checkbox', checked: true })
  const logOut = button('secondary', texts.logOut, async () => {
    // The client deletes its token even if the service cannot be reached. So we ignore an error of `logout`.
    await courtside.logout({ forget: shared.checked }).catch(() => {})
  })
  const { game_level: level } = user
  return [
    h('h1', {}, texts.hello(user.first_name)),
    h('p', { class: 'lead' }, texts.homeLead),
    h(
      'section',
      { class: 'card', 'aria-labelledby': 'level-title' },
      h(
        'div',
        { class: 'head' },
        h('h2', { id: 'level-title' }, texts.level),
        button('link', texts.change, () => go('level', { user })),
      ),
      level &&
        h(
          'p',
          { lang: findLevelLanguage(level) },
          h('strong', {}, level.name),
          h('br'),
          h('span', { class: 'muted' }, level.description),
        ),
    ),
    h(
      'section',
      { class: 'card', 'aria-labelledby': 'profile-title' },
      h('h2', { id: 'profile-title' }, texts.profile),
      h(
        'dl',
        {},
        h('dt', {}, texts.name),
        h('dd', {}, `${user.first_name} ${user.last_name}`),
        h('dt', {}, texts.email),
        h('dd', {}, user.email),
        h('dt', {}, texts.since),
        h('dd', {}, since),
      ),
    ),
    h(
      'section',
      { class: 'card', 'aria-labelledby': 'account-title' },
      h('h2', { id: 'account-title' }, texts.account),
      h('label', { class: 'check' }, shared, texts.sharedComputer),
      h('p', {}, logOut),
      createDeletion({ courtside, go, user }),
    ),
  ]
}
