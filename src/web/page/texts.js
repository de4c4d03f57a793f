const FR = {
  language: 'English',
  reference: 'Documentation de l’API',
  welcome: 'Bienvenue au bord du court',
  welcomeLead: 'Sans mot de passe : un code à 4 chiffres arrive par e-mail.',
  signIn: 'Se connecter',
  signUp: 'Créer un compte',
  how: 'Se connecter ou créer un compte',
  email: 'Adresse e-mail',
  firstName: 'Prénom',
  lastName: 'Nom',
  terms: 'J’accepte les conditions générales d’utilisation',
  readTerms: 'Lire les conditions (nouvel onglet)',
  sendCode: 'Recevoir un code',
  required: 'Ce champ est obligatoire.',
  termsRequired: 'Il faut accepter les conditions pour créer un compte.',
  signedOut: 'Votre session est terminée.',
  signedOutPush:
    'Les notifications push de cet appareil n’affichent plus que leur titre. Connectez-vous pour en revoir le texte.',
  deleted: 'Votre compte et tout ce qu’il contenait ont été supprimés.',
  codeTitle: 'Votre code',
  codeLead: email =>
    `Si cette adresse peut recevoir un code, il vient de partir vers ${email}. Il est valable 15 minutes.`,
  code: 'Code à 4 chiffres',
  codeShape: 'Le code a 4 chiffres.',
  verify: 'Valider',
  resend: 'Renvoyer un code',
  resendIn: time => `Renvoyer un code dans ${time}`,
  resent: 'Un e-mail est reparti. Saisissez le code du dernier e-mail.',
  otherEmail: 'Changer d’adresse',
  levelTitle: 'Quel est votre niveau ?',
  levelLead: 'Choisissez ce qui vous ressemble le plus. Vous pourrez en changer quand vous voudrez.',
  levels: 'Niveaux de jeu',
  levelNeeded: 'Choisissez un niveau.',
  save: 'Enregistrer',
  back: 'Retour',
  hello: name => `Bonjour ${name}`,
  homeLead: 'La cloche vous dit ce qui arrive à vos parties et à vos scores.',
  level: 'Votre niveau',
  change: 'Modifier',
  profile: 'Profil',
  name: 'Nom',
  since: 'Membre depuis',
  logOut: 'Se déconnecter',
  sharedComputer: 'Ordinateur partagé : oublier mon compte ici',
  account: 'Compte',
  deleteAccount: 'Supprimer mon compte',
  deleteLead:
    'Votre profil et vos notifications seront effacés pour toujours. Pour confirmer, un code vous est envoyé.',
  deleteNow: 'Supprimer définitivement',
  cancel: 'Annuler',
  loading: 'Chargement…',
  retry: 'Réessayer',
  development: 'Développement',
  developmentLead: 'Ce cadre n’existe que sur cette machine, tant qu’aucun serveur de mail n’est réglé.',
  mails: 'Derniers e-mails',
  noMail: 'Pas encore d’e-mail.',
  useCode: code => `Saisir le code ${code}`,
  game: 'Jouer une partie',
  gameLead: 'Envoie des événements comme le ferait votre service de parties, et la cloche sonne.',
  gameLocked: 'Connectez-vous d’abord.',
  pushes: 'Derniers push',
  pushesLead: 'Un service push local reçoit les push à la place de celui de votre navigateur.',
  subscribePage: 'Abonner cette page',
  pageSubscribed: 'Cette page est abonnée. Jouez une partie.',
  noPush: 'Pas encore de push.',
  urgentAt: time => `urgent, ${time}`,
  nextEvent: 'Événement suivant',
  wholeStory: 'Toute l’histoire',
  played: (type, step, steps) => `${type} (${step} sur ${steps})`,
  unreachable: 'Le service est injoignable. Vérifiez votre connexion.',
  unexpected: 'Une erreur est survenue. Rechargez la page.',
}

const EN = {
  language: 'Français',
  reference: 'API reference',
  welcome: 'Welcome courtside',
  welcomeLead: 'No password: a 4-digit code arrives by email.',
  signIn: 'Sign in',
  signUp: 'Create an account',
  how: 'Sign in or create an account',
  email: 'Email address',
  firstName: 'First name',
  lastName: 'Last name',
  terms: 'I accept the terms of use',
  readTerms: 'Read the terms (new tab)',
  sendCode: 'Send me a code',
  required: 'This field is required.',
  termsRequired: 'To create an account, accept the terms of use.',
  signedOut: 'Your session has ended.',
  signedOutPush: 'The pushes to this device show only their title. Sign in to see their text again.',
  deleted: 'Your account and everything in it have been deleted.',
  codeTitle: 'Your code',
  codeLead: email =>
    `If this address can receive a code, a code is on its way to ${email}. The code is valid for 15 minutes.`,
  code: '4-digit code',
  codeShape: 'The code has 4 digits.',
  verify: 'Confirm',
  resend: 'Send another code',
  resendIn: time => `Send another code in ${time}`,
  resent: 'Another email is on its way. Enter the code of the latest email.',
  otherEmail: 'Use another address',
  levelTitle: 'What is your level?',
  levelLead: 'Choose the level that describes you best. You can change your level at any time.',
  levels: 'Game levels',
  levelNeeded: 'Choose a level.',
  save: 'Save',
  back: 'Back',
  hello: name => `Hello ${name}`,
  homeLead: 'The bell tells you what happens to your games and scores.',
  level: 'Your level',
  change: 'Change',
  profile: 'Profile',
  name: 'Name',
  since: 'Member since',
  logOut: 'Log out',
  sharedComputer: 'Shared computer: forget my account here',
  account: 'Account',
  deleteAccount: 'Delete my account',
  deleteLead: 'Your profile and notifications will be deleted permanently. We send you a code to confirm the deletion.',
  deleteNow: 'Delete permanently',
  cancel: 'Cancel',
  loading: 'Loading…',
  retry: 'Try again',
  development: 'Development',
  developmentLead: 'Only browsers on this machine show this panel, and only while no mail server is configured.',
  mails: 'Latest emails',
  noMail: 'No email yet.',
  useCode: code => `Enter the code ${code}`,
  game: 'Play a game',
  gameLead: 'These buttons report events, as your games service would. The bell shows the new notifications.',
  gameLocked: 'Sign in first.',
  pushes: 'Latest pushes',
  pushesLead: 'A local push service receives the pushes, in place of the push service of your browser.',
  subscribePage: 'Subscribe this page',
  pageSubscribed: 'This page is subscribed. Play a game.',
  noPush: 'No push yet.',
  urgentAt: time => `urgent, ${time}`,
  nextEvent: 'Next event',
  wholeStory: 'The whole story',
  played: (type, step, steps) => `${type} (${step} of ${steps})`,
  unreachable: 'The service cannot be reached. Check your connection.',
  unexpected: 'Something went wrong. Reload the page.',
}

const KEY = 'courtside.language'

function readChoice() {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}

/**
 * The language of the page, `fr` or `en`. If the user has chosen no language on this page, the language of the browser
 * decides.
 */
export const language = /^en\b/i.test(readChoice() ?? navigator.language) ? 'en' : 'fr'
export const texts = language === 'en' ? EN : FR

export function switchLanguage() {
  try {
    localStorage.setItem(KEY, language === 'en' ? 'fr' : 'en')
  } catch {}
  location.reload()
}

/**
 * Returns the message of an error for the user. Only the errors of the client and of the service are in the language of
 * the page. The browser's own texts, such as "Failed to fetch", are not.
 */
export function describeError(error) {
  if (error.name === 'CourtsideError') return error.message
  return error instanceof TypeError ? texts.unreachable : texts.unexpected
}
