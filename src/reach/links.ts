/** The settings LINK_TEMPLATE, APP_URL and PUBLIC_URL. */
export type Links = { template: string | undefined; app: string | undefined; public: string | undefined }

/**
 * Returns the absolute link of a notification, from LINK_TEMPLATE, APP_URL or PUBLIC_URL, in this order. The function
 * encodes the values, so a value stays in its place in the URL. If `data` lacks a value of the template, the link leads
 * to the next of these settings. If only the template is set, the link leads to its host.
 * @returns undefined if no setting is set
 */
export function buildLink(links: Links, data: Record<string, unknown>): string | undefined {
  const names = [...(links.template ?? '').matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  const isComplete = names.every(name => ['string', 'number'].includes(typeof data[name]))
  const link = isComplete
    ? links.template?.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(data[name])))
    : undefined
  return link ?? links.app ?? links.public ?? findOrigin(links.template)
}

/** LINK_TEMPLATE has placeholders only after the host. */
function findOrigin(template: string | undefined): string | undefined {
  return template && new URL(template.replace(/[{}]/g, '')).origin
}
