/**
 * Returns the number of members of the first object inside a value that has more than `most`; undefined if none has.
 */
export function membersOfWideObject(value: unknown, most: number): number | undefined {
  for (const container of containersIn(value)) {
    const count = Array.isArray(container) ? 0 : Object.keys(container).length;
    if (count > most) return count;
  }
  return undefined;
}

/** Returns the total number of members of all arrays inside a value. */
export function membersOfLists(value: unknown): number {
  let count = 0;
  for (const container of containersIn(value)) if (Array.isArray(container)) count += container.length;
  return count;
}

/** Yields the value and everything nested in it that is an array or an object, to any depth. */
function* containersIn(value: unknown): Generator<object> {
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    yield next;
    for (const member of Array.isArray(next) ? next : Object.values(next)) {
      if (typeof member === 'object') open.push(member);
    }
  }
}
