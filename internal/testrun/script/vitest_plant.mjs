import { expect, test } from '__VITEST__'

test('__CANARY__', () => { expect([1, 2, 3].length).toBe(0) })
