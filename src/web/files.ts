import { readdir, readFile } from 'node:fs/promises'
import { computeEtag } from '../http/format/etag.ts'
import { fillPage } from '../http/format/html.ts'

export type File = { path: string; type: string; content: Buffer; etag: string }

const TYPES: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

const PAGE = new URL('page/', import.meta.url)
const CLIENT = new URL('../../client/dist/', import.meta.url)

/** The values that the page shows. */
export type PageValues = { appName: string; termsUrl: string | undefined }

/**
 * Reads every file of the page and of the built client, and puts the values into the page. The service serves only these files, so a request cannot reach
 * any other file on the disk.
 */
export async function readFiles({ appName, termsUrl = '' }: PageValues): Promise<File[]> {
  const [page, client, inbox] = await Promise.all([
    readFolder(PAGE, '/web/'),
    readFolder(CLIENT, '/client/'),
    readFolder(new URL('inbox/', CLIENT), '/client/inbox/'),
  ])
  return [...page, ...client, ...inbox].map(file => {
    if (file.path !== '/web/index.html') return file
    const content = fillPage(file.content, { app_name: appName, terms_url: termsUrl })
    return { ...file, path: '/', content, etag: computeEtag(content) }
  })
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
