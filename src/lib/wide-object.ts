/** How many members the first object in a value has that has more than `most`; undefined where none has. */
export function membersOfWideObject(value: unknown, most: number): number | undefined {
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const members: unknown[] = Array.isArray(next) ? next : Object.values(next);
    if (!Array.isArray(next) && members.length > most) return members.length;
    for (const member of members) if (typeof member === 'object') open.push(member);
  }
  return undefined;
}
