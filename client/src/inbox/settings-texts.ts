import type { PushState } from '../push.ts'
import type { Language } from './texts.ts'

export type SettingsTexts = {
  title: string
  back: string
  device: string
  devicePush: string
  states: Record<PushState, string>
  push: string
  email: string
  pausedLabel: string
  pausedHint: string
  quiet: string
  quietEnabled: string
  quietHint: string
  from: string
  to: string
  timeZone: string
  invalidTime: string
  signedOut: string
  signedOutPush: string
  signIn: string
}

export const SETTINGS_TEXTS: Record<Language, SettingsTexts> = {
  fr: {
    title: 'Réglages des notifications',
    back: 'Retour aux notifications',
    device: 'Cet appareil',
    devicePush: 'Notifications push sur cet appareil',
    states: {
      unsupported: 'Les notifications push ne sont pas disponibles dans ce navigateur.',
      'needs-install':
        'Sur iPhone et iPad, ajoutez d’abord ce site à l’écran d’accueil : touchez « Partager », puis « Sur l’écran d’accueil ». Ouvrez ensuite le site depuis son icône.',
      default: 'Votre navigateur vous demandera votre accord.',
      denied: 'Vous avez bloqué les notifications de ce site. Autorisez-les dans les réglages de votre navigateur.',
      off: 'Cet appareil ne vous prévient que si le site est ouvert.',
      on: 'Cet appareil vous prévient même si le site est fermé.',
    },
    push: 'Push',
    email: 'E-mail',
    pausedLabel: 'Suspendre tous les e-mails',
    pausedHint: 'Sans cela, un e-mail vous signale ce que vous n’avez pas lu. Les codes de connexion partent toujours.',
    quiet: 'Heures calmes',
    quietEnabled: 'Attendre la fin des heures calmes',
    quietHint: 'Le push et l’e-mail attendent, mais au plus tard jusqu’à une heure avant le début d’une partie.',
    from: 'De',
    to: 'À',
    timeZone: 'Fuseau horaire',
    invalidTime: 'Indiquez une heure, comme 22:00.',
    signedOut: 'Connectez-vous pour voir vos réglages.',
    signedOutPush:
      'Votre session a expiré. Une autre personne utilise peut-être cet appareil, donc les notifications push n’affichent plus que leur titre. Connectez-vous pour en revoir le texte.',
    signIn: 'Se connecter',
  },
  en: {
    title: 'Notification settings',
    back: 'Back to the notifications',
    device: 'This device',
    devicePush: 'Push notifications on this device',
    states: {
      unsupported: 'Push notifications are not available in this browser.',
      'needs-install':
        'On an iPhone or iPad, first add this site to the home screen: tap “Share”, then “Add to Home Screen”. Then open the site from its icon.',
      default: 'Your browser will ask for your permission.',
      denied: 'You have blocked the notifications of this site. Allow them in the settings of your browser.',
      off: 'This device notifies you only while the site is open.',
      on: 'This device notifies you even while the site is closed.',
    },
    push: 'Push',
    email: 'Email',
    pausedLabel: 'Pause all emails',
    pausedHint: 'Otherwise, an email tells you what you have not read. Sign-in codes are always sent.',
    quiet: 'Quiet hours',
    quietEnabled: 'Wait until the quiet hours end',
    quietHint: 'Push and email wait, but no longer than until one hour before the start of a game.',
    from: 'From',
    to: 'To',
    timeZone: 'Time zone',
    invalidTime: 'Enter a time, such as 22:00.',
    signedOut: 'Sign in to see your settings.',
    signedOutPush:
      'Your session has expired. Somebody else may be using this device, so pushes show only their title. Sign in to see their text again.',
    signIn: 'Sign in',
  },
}
