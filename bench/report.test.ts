import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatRatio, goalRow } from './report.ts'

test('goalRow rounds a figure before it compares the figure with the goal', () => {
  const cases = [
    [1.104, { max: 1.1 }, '1.10 ×', true],
    [1.106, { max: 1.1 }, '1.11 ×', false],
    [1.02, { max: 1.1 }, '1.02 ×', true],
    [0.846, { min: 0.85 }, '0.85 ×', true],
    [0.844, { min: 0.85 }, '0.84 ×', false],
    [1.3, { min: 0.85 }, '1.30 ×', true],
    [Number.NaN, { max: 1.1 }, 'NaN ×', false],
  ] as const
  for (const [value, goal, measured, reached] of cases) {
    const result = goalRow('some work', value, goal, formatRatio)
    assert.deepEqual([result.measured, result.reached], [measured, reached])
  }
})
