export type Language = 'fr' | 'en'
export type Texts = (typeof TEXTS)[Language]

/** Returns `en` for an English language tag and `fr` for any other tag. @param tag a BCP 47 tag */
export function toLanguage(tag: string | null | undefined): Language {
  return /^en\b/i.test(tag ?? '') ? 'en' : 'fr'
}

export const TEXTS = {
  fr: {
    title: 'Notifications',
    unread: (count: number) => (count === 0 ? 'aucune non lue' : count === 1 ? '1 non lue' : `${count} non lues`),
    isUnread: 'Non lue.',
    markAll: 'Tout marquer comme lu',
    remove: 'Supprimer :',
    more: 'Afficher les précédentes',
    loading: 'Chargement…',
    empty: 'Rien pour l’instant. Vos parties et vos scores s’afficheront ici.',
    failed: 'Les notifications n’ont pas pu être chargées.',
    stale: 'Hors connexion. Cette liste n’est peut-être pas à jour.',
    noClient: 'Les notifications ne sont pas disponibles.',
    retry: 'Réessayer',
    arrived: 'Nouvelle notification :',
    removed: 'Notification supprimée.',
    allRead: 'Notifications marquées comme lues.',
    now: 'à l’instant',
    settings: 'Réglages des notifications',
    settingsFailed: 'Les réglages n’ont pas pu être chargés.',
  },
  en: {
    title: 'Notifications',
    unread: (count: number) => (count === 0 ? 'none unread' : `${count} unread`),
    isUnread: 'Unread.',
    markAll: 'Mark all as read',
    remove: 'Delete:',
    more: 'Show earlier notifications',
    loading: 'Loading…',
    empty: 'Nothing yet. Your games and scores will show up here.',
    failed: 'The notifications could not be loaded.',
    stale: 'Offline. This list may be out of date.',
    noClient: 'Notifications are not available.',
    retry: 'Try again',
    arrived: 'New notification:',
    removed: 'Notification deleted.',
    allRead: 'Notifications marked as read.',
    now: 'just now',
    settings: 'Notification settings',
    settingsFailed: 'The settings could not be loaded.',
  },
}
