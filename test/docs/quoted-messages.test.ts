import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../support/start/process.ts';

/** First words of commands, of SQL, and of messages of PostgreSQL. */
const FOREIGN = /^(?:create|docker|drop|insert|npm|permission|portcullis|promtool|revoke|select|terminating) /;

const source = globSync('src/**/*.ts', { cwd: ROOT })
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n')
  .replace(/['`]\s*\+\s*['`]/g, '');

/** Returns the quoted parts of a page that look like a message: at least four words. `…` stands for any text. */
function messages(page: string): string[] {
  const prose = readFileSync(join(ROOT, page), 'utf8').replace(/```.*?```/gs, '');
  return [...prose.matchAll(/`([A-Za-z][a-z]+(?:[ ,;:']+(?:[\w'()-]+|…)){3,})`/g)].map(([, text = '']) => text);
}

describe('the pages for operators', () => {
  it('quote only messages that the product writes', () => {
    const quoted = globSync('docs/operations/*.md', { cwd: ROOT }).flatMap(messages);
    const missing = quoted
      .filter((text) => !FOREIGN.test(text))
      .filter((text) => text.split('…').some((part) => !source.includes(part.trim())));
    expect(quoted.length).toBeGreaterThan(10);
    expect(missing).toEqual([]);
  });
});
