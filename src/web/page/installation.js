// The values that the service has put into the page.
const read = name => document.querySelector(`meta[name=${name}]`).content

export const appName = read('application-name')
/** An empty string if there is no address. */
export const termsUrl = read('terms-url')
