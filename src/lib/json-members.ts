const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]/g;
const COLON = /\s*:/y;

/** Whether the outermost object of a well-formed JSON text names a member twice: `JSON.parse` keeps the last in silence. */
export function repeatsMember(text: string): boolean {
  const names = new Set<string>();
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (depth === 1 && isFollowedByColon(text, index + token.length)) {
      const name = token.includes('\\') ? String(JSON.parse(token)) : token.slice(1, -1);
      if (names.has(name)) return true;
      names.add(name);
    }
  }
  return false;
}

function isFollowedByColon(text: string, at: number): boolean {
  COLON.lastIndex = at;
  return COLON.test(text);
}
