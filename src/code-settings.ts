/**
 * The numbers of wrong guesses that an address, a network and the installation may have before codes get more parts
 * (SECURITY.md, "Four digits").
 */
export type Budgets = { address: number; network: number; installation: number }

/** The numbers of unfinished sign-ups that one network and the installation may have in an hour. */
export type SignUpLimits = { network: number; installation: number }

export const DEFAULT_BUDGETS: Budgets = { address: 10, network: 50, installation: 100 }

/** Accepts a list such as `address=10,network=50`. A budget that is not named gets its default. */
export function guessBudgets(value: string): Budgets | undefined {
  if (value === 'off') return undefined
  const budgets = new Map<string, number>()
  for (const item of value.split(',')) {
    const [, name, count] = /^\s*(address|network|installation)\s*=\s*([1-9]\d{0,6})\s*$/.exec(item) ?? []
    if (!name) throw new Error('must be budgets such as address=10,network=50,installation=100, or off')
    if (budgets.has(name)) throw new Error(`must name each budget only once, but names ${name} twice`)
    budgets.set(name, Number(count))
  }
  return { ...DEFAULT_BUDGETS, ...Object.fromEntries(budgets) }
}

/** Accepts two numbers such as `60,600`. */
export function signUpLimits(value: string): SignUpLimits | undefined {
  if (value === 'off') return undefined
  const [, network, installation] = /^\s*([1-9]\d{0,6})\s*,\s*([1-9]\d{0,6})\s*$/.exec(value) ?? []
  if (!network) throw new Error('must be two numbers such as 60,600, or off')
  return { network: Number(network), installation: Number(installation) }
}
