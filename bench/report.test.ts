import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatRatio, goalRow } from './report.ts'

test('whether a goal is reached is judged by what is shown', () => {
  const cases = [
    [1.104, { most: 1.1 }, '1.10 ×', true],
    [1.106, { most: 1.1 }, '1.11 ×', false],
    [1.02, { most: 1.1 }, '1.02 ×', true],
    [0.846, { least: 0.85 }, '0.85 ×', true],
    [0.844, { least: 0.85 }, '0.84 ×', false],
    [1.3, { least: 0.85 }, '1.30 ×', true],
    [Number.NaN, { most: 1.1 }, 'NaN ×', false],
  ] as const
  for (const [value, goal, measured, reached] of cases) {
    const judged = goalRow('some work', value, goal, formatRatio)
    assert.deepEqual([judged.measured, judged.reached], [measured, reached])
  }
})
