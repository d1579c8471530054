import { describe, expect, it } from 'vitest';
import { startFixture, useFixture } from '../support/graphql/fixture.ts';

const fixture = useFixture();

describe('GraphiQL', () => {
  it('DG-04: is the only page without a token, and loads nothing from other origins', async () => {
    const page = await fixture.fetch({ headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toContain('text/html');
    expect(page.text).toContain('<title>Portcullis</title>');
    const loaded = [...page.text.slice(0, 20_000).matchAll(/<(?:script|link)[^>]*(?:src|href)="(?<from>[^"]+)"/g)];
    expect(loaded.map(({ groups }) => groups?.from).filter((from) => /^(?:https?:)?\/\//.test(from ?? ''))).toEqual([]);
  });

  it('DG-04: a POST that accepts HTML is an operation, which requires a token', async () => {
    const answer = await fixture.query('{ me { nodeId } }', { token: undefined, headers: { accept: 'text/html' } });
    expect(answer.status).toBe(401);
  });

  it('DG-06: if it is off, its URL is an operation, which requires a token', async () => {
    await using closed = await startFixture({ graphiql: false });
    expect((await closed.fetch({ headers: { accept: 'text/html' } })).status).toBe(401);
  });
});
