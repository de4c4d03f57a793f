/** Accepts a list such as `address=10,network=50`. A budget that is not named gets its default. */
export function guessBudgets(value: string): { address: number; network: number; installation: number } | undefined {
  if (value === 'off') return undefined
  const budgets = { address: 10, network: 50, installation: 100 }
  for (const item of value.split(',')) {
    const [, name, count] = /^\s*(address|network|installation)\s*=\s*([1-9]\d{0,6})\s*$/.exec(item) ?? []
    if (!name) throw new Error('must be budgets such as address=10,network=50,installation=100, or off')
    budgets[name as keyof typeof budgets] = Number(count)
  }
  return budgets
}

/** Accepts two numbers such as `60,600`. */
export function signUpLimits(value: string): { network: number; installation: number } | undefined {
  if (value === 'off') return undefined
  const [, network, installation] = /^\s*([1-9]\d{0,6})\s*,\s*([1-9]\d{0,6})\s*$/.exec(value) ?? []
  if (!network) throw new Error('must be two numbers such as 60,600, or off')
  return { network: Number(network), installation: Number(installation) }
}
