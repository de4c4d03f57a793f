import { readdir, readFile } from 'node:fs/promises'
import { computeEtag } from '../http/format/etag.ts'

export type File = { path: string; type: string; content: Buffer; etag: string }

const TYPES: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

const PAGE = new URL('page/', import.meta.url)
const CLIENT = new URL('../../client/dist/', import.meta.url)

/** Everything the page consists of, read once. A path that isn't in this list leads nowhere, whatever is on the disk. */
export async function readFiles(): Promise<File[]> {
  const [page, client, inbox] = await Promise.all([
    readFolder(PAGE, '/web/'),
    readFolder(CLIENT, '/client/'),
    readFolder(new URL('inbox/', CLIENT), '/client/inbox/'),
  ])
  return [...page, ...client, ...inbox].map(file => (file.path === '/web/index.html' ? { ...file, path: '/' } : file))
}

async function readFolder(folder: URL, under: string): Promise<File[]> {
  const names = (await readdir(folder)).filter(name => typeOf(name) !== undefined)
  return Promise.all(
    names.map(async name => {
      const content = await readFile(new URL(name, folder))
      return { path: `${under}${name}`, type: typeOf(name)!, content, etag: computeEtag(content) }
    }),
  )
}

function typeOf(name: string): string | undefined {
  return TYPES[name.split('.').at(-1)!]
}
