/**
 * `STATUS_CODES` of node:http, which is not imported: for an `import` Node lays out all that a module has, and in that one lies a
 * whole fetch, which took a start a tenth of a second and 13 MB. `npm run imports` holds the rest to it.
 */
export const { STATUS_CODES } = process.getBuiltinModule('node:http')
