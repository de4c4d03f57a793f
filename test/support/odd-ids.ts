/**
 * Path segments that are not the id of a stored notification: unknown or huge numbers, other text, and text that cannot
 * be decoded.
 */
export const ODD_IDS = [
  '999999999',
  '0',
  '-1',
  '1.5',
  'x',
  '9007199254740991',
  '9007199254740992',
  '9223372036854775808',
  '9'.repeat(30),
  '9'.repeat(200),
  '%31%zz',
  '%00',
  '١',
  '01',
  '+1',
  '1e1',
]
