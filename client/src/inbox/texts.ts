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
    remove: (title: string) => `Supprimer : ${title}`,
    more: 'Afficher les précédentes',
    loading: 'Chargement…',
    empty: 'Rien pour l’instant. Vos parties et vos scores s’afficheront ici.',
    failed: 'Les notifications n’ont pas pu être chargées.',
    retry: 'Réessayer',
    arrived: (title: string, message: string) => `Nouvelle notification : ${title}. ${message}`,
    removed: 'Notification supprimée.',
    allRead: 'Notifications marquées comme lues.',
    now: 'à l’instant',
  },
  en: {
    title: 'Notifications',
    unread: (count: number) => (count === 0 ? 'none unread' : `${count} unread`),
    isUnread: 'Unread.',
    markAll: 'Mark all as read',
    remove: (title: string) => `Delete: ${title}`,
    more: 'Show earlier notifications',
    loading: 'Loading…',
    empty: 'Nothing yet. Your games and scores will show up here.',
    failed: 'The notifications could not be loaded.',
    retry: 'Try again',
    arrived: (title: string, message: string) => `New notification: ${title}. ${message}`,
    removed: 'Notification deleted.',
    allRead: 'Notifications marked as read.',
    now: 'just now',
  },
}
