import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/**
 * Creates the links between the names of PostgreSQL's libraries, for example `libicuuc.so.60` for `libicuuc.so.60.2`. A
 * package of npm cannot contain links, so the package lists them in a file. Its install script would create them, but
 * no install script runs (`.npmrc`).
 * @param packageFolder the folder of the package with PostgreSQL's programs
 * @throws if links are missing and the user may not create them. The message tells the operator what to do
 */
export function linkLibraries(packageFolder: string): void {
  const list = join(packageFolder, 'native/pg-symlinks.json')
  // The packages for Windows need no links and have no list.
  if (!existsSync(list)) return
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(list, 'utf8'))
  for (const { source, target } of links) {
    if (existsSync(join(packageFolder, target))) continue
    try {
      if (dirname(source) !== dirname(target)) throw new Error(`${target} is not in the folder of ${source}`)
      symlinkSync(basename(source), join(packageFolder, target))
    } catch (cause) {
      // Two processes may start at the same time.
      if ((cause as NodeJS.ErrnoException).code === 'EEXIST') continue
      throw new Error(
        `Cannot link the libraries of PostgreSQL in ${packageFolder}: ${(cause as Error).message}. Run ` +
          '`npm run build` as the owner of this folder, or set DATABASE_URL.',
        { cause },
      )
    }
  }
}
