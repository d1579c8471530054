import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Tool } from '../../src/api/mcp/kit/tool.ts';
import { TOOLS } from '../../src/app/tools.ts';

const PAGE = join(import.meta.dirname, '../../docs/mcp.md');
const PART = /(<!-- tools:[^\n]*-->\n)([\s\S]*?)(<!-- end of tools -->)/;

function lineOf({ name, scope, listed: { title, inputSchema, annotations } }: Tool): string {
  const required = new Set(inputSchema.required ?? []);
  const members = Object.keys(inputSchema.properties ?? {}).sort(
    (a, b) => Number(required.has(b)) - Number(required.has(a)),
  );
  const args = members.map((member) => (required.has(member) ? `**${member}**` : member)).join(', ');
  const { readOnlyHint, destructiveHint, idempotentHint } = annotations ?? {};
  const writes = [...(destructiveHint ? ['destroys'] : []), ...(idempotentHint ? ['repeatable'] : [])].join(', ');
  const effect = readOnlyHint ? 'reads' : `writes${writes === '' ? '' : `: ${writes}`}`;
  return `| \`${name}\` | ${title} | ${scope === undefined ? 'any' : `\`${scope}\``} | ${effect} | ${args || 'none'} |`;
}

function table(): string {
  const head = ['| tool | what it does | scope | effect | arguments (needed ones bold) |', '|---|---|---|---|---|'];
  return `\n${[...head, ...[...TOOLS.values()].map(lineOf)].join('\n')}\n\n`;
}

describe('docs/mcp.md', () => {
  it('D8-06: has the table of tools that the server lists (UPDATE_DOCS=1 writes it)', () => {
    const page = readFileSync(PAGE, 'utf8');
    if (process.env.UPDATE_DOCS === '1')
      writeFileSync(
        PAGE,
        page.replace(PART, (_all, start, _old, end) => start + table() + end),
      );
    expect(PART.exec(readFileSync(PAGE, 'utf8'))?.[2]).toBe(table());
  });

  it('D8-06: names no tool that does not exist', () => {
    const named =
      readFileSync(PAGE, 'utf8').match(/`((?:list|get|preview|create|replace|assign|migrate)_[a-z_]+)`/g) ?? [];
    expect(named.map((name) => name.slice(1, -1)).filter((name) => !TOOLS.has(name))).toEqual([]);
    expect(named.length).toBeGreaterThan(15);
  });
});
