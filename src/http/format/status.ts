/**
 * `STATUS_CODES` of node:http. An `import` of node:http also evaluates Node's fetch: 0.1 s and 13 MB at start-up. So
 * `npm run imports` refuses that import in src/.
 */
export const { STATUS_CODES } = process.getBuiltinModule('node:http')
