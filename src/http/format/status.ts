/**
 * `STATUS_CODES` from node:http. An `import` of node:http would also load Node's fetch, which takes 0.1 s and 13 MB at
 * startup. So `npm run imports` refuses that import in src/.
 */
export const { STATUS_CODES } = process.getBuiltinModule('node:http')
