import { readdir, readFile } from 'node:fs/promises'
import { computeEtag } from '../http/format/etag.ts'
import { fillPage } from '../http/format/html.ts'

export type File = { path: string; type: string; content: Buffer; etag: string }

const TYPES: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
}

const PAGE = new URL('page/', import.meta.url)
const CLIENT = new URL('../../client/dist/', import.meta.url)

/** The values that the page shows. */
export type PageValues = { appName: string; termsUrl: string | undefined }

/**
 * Reads every file of the page and of the built client, puts the values into the page, and creates the manifest. The
 * service serves only these files, so a request cannot reach any other file on the disk.
 */
export async function readFiles({ appName, termsUrl = '' }: PageValues): Promise<File[]> {
  const [page, client, inbox] = await Promise.all([
    readFolder(PAGE, '/web/'),
    readFolder(CLIENT, '/client/'),
    readFolder(new URL('inbox/', CLIENT), '/client/inbox/'),
  ])
  const files = [...page, ...client, ...inbox].map(file => {
    // A service worker controls only the pages below its own path.
    if (file.path === '/client/service-worker.js') return { ...file, path: '/service-worker.js' }
    if (file.path !== '/web/index.html') return file
    const content = fillPage(file.content, { app_name: appName, terms_url: termsUrl })
    return { ...file, path: '/', content, etag: computeEtag(content) }
  })
  return [...files, createManifest(appName)]
}

/** Creates the manifest, with which a phone adds the page to its home screen. */
function createManifest(name: string): File {
  const icon = (file: string, size: number, purpose = 'any') => ({
    src: `web/${file}`,
    sizes: `${size}x${size}`,
    type: TYPES.png,
    purpose,
  })
  const manifest = {
    name,
    short_name: name,
    id: './',
    start_url: './',
    scope: './',
    display: 'standalone',
    background_color: '#f5f7f4',
    theme_color: '#0b6b4f',
    icons: [icon('icon-192.png', 192), icon('icon-512.png', 512), icon('icon-maskable.png', 512, 'maskable')],
  }
  const content = Buffer.from(JSON.stringify(manifest))
  return { path: '/manifest.webmanifest', type: 'application/manifest+json', content, etag: computeEtag(content) }
}

async function readFolder(folder: URL, prefix: string): Promise<File[]> {
  const names = (await readdir(folder)).filter(name => findMediaType(name) !== undefined)
  return Promise.all(
    names.map(async name => {
      const content = await readFile(new URL(name, folder))
      return { path: `${prefix}${name}`, type: findMediaType(name)!, content, etag: computeEtag(content) }
    }),
  )
}

function findMediaType(name: string): string | undefined {
  return TYPES[name.split('.').at(-1)!]
}
