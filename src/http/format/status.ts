/**
 * The reason phrases of all HTTP statuses: `STATUS_CODES` of node:http. An `import` of node:http would make Node load
 * the code of the global `fetch`, and this takes 0.1 s and 13 MB at startup. `process.getBuiltinModule` does not load
 * that code. So `npm run imports` refuses an `import` of node:http in src/.
 */
export const { STATUS_CODES } = process.getBuiltinModule('node:http')
