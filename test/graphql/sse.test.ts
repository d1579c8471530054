import { beforeEach, describe, expect, it } from 'vitest';
import { EventReader } from '../support/graphql/event-reader.ts';
import { OTHER_NODE, startFixtureOn, until } from '../support/graphql/fixture.ts';
import { beforeEachTest, beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';

const database = beforeTests(scratchDatabase);
const fixture = beforeEachTest(() => startFixtureOn(database));

beforeEach(async () => {
  await fixture.register('t');
});

const UPDATES = `subscription ($after: String, $filter: TransactionFilter) {
  transactionUpdates(after: $after, filter: $filter) { cursor event previousStatus correlationId transaction { id status } }
}`;

describe('transactionUpdates over SSE', () => {
  it('DG-08: each message is a next event with the cursor as its id', async () => {
    await using reader = await fixture.stream(UPDATES, { variables: { after: '0' } });
    expect(reader.response.status).toBe(200);
    expect(reader.response.headers.get('content-type')).toBe('text/event-stream');
    await fixture.notify('t', 1);
    const first = await reader.next();
    expect(first).toMatchObject({ event: 'next', id: '1' });
    expect(JSON.parse(first?.data ?? '')).toEqual({
      data: {
        transactionUpdates: {
          cursor: '1',
          event: 'transaction.status.updated',
          previousStatus: null,
          correlationId: 'of-t-1',
          transaction: { id: 't', status: 'STARTED' },
        },
      },
    });
    await fixture.notify('t', 3);
    expect(await reader.next()).toMatchObject({ id: '2' });
  });

  it('DG-08: GET with the header is a stream too, in any order of Accept', async () => {
    const query = encodeURIComponent('subscription { transactionUpdates(after: "0") { cursor } }');
    const headers = { accept: 'application/json, text/event-stream', authorization: `Bearer ${fixture.token}` };
    await using reader = new EventReader(await fetch(`${fixture.url}?query=${query}`, { headers }));
    await fixture.notify('t', 1);
    expect(await reader.nextJson()).toEqual({ data: { transactionUpdates: { cursor: '1' } } });
  });

  it('D6-10: an empty Last-Event-ID counts as none', async () => {
    for (const status of [1, 2]) await fixture.notify('t', status);
    await using reader = await fixture.stream(UPDATES, { variables: { after: '1' }, headers: { 'last-event-id': '' } });
    expect(await reader.next()).toMatchObject({ id: '2' });
  });

  it('D6-10: delivers only events that match the filter and belong to the node of the token', async () => {
    await fixture.register('foreign', OTHER_NODE);
    await fixture.register('u');
    await using reader = await fixture.stream(UPDATES, {
      variables: { after: '0', filter: { status: 'DONE', type: 1 } },
    });
    await fixture.notify('foreign', 3);
    for (const status of [1, 2]) await fixture.notify('t', status);
    await fixture.notify('u', 3);
    expect(await reader.nextJson()).toMatchObject({ data: { transactionUpdates: { transaction: { id: 'u' } } } });
  });

  it.each(['x', '-1', '1.5', ' 1', '00', '9'.repeat(40)])('D6-10: %j is an invalid cursor', async (after) => {
    await using reader = await fixture.stream(UPDATES, { variables: { after } });
    const { errors } = await reader.nextJson();
    expect(errors[0].extensions).toMatchObject({ code: 'BAD_USER_INPUT', issues: [{ path: ['after'] }] });
    expect(await reader.next()).toMatchObject({ event: 'complete' });
    expect(await reader.next()).toBeUndefined();
  });

  it('D6-10: a cursor that was never issued gets cursor_expired', async () => {
    await using reader = await fixture.stream(UPDATES, { variables: { after: '7' } });
    expect((await reader.nextJson()).errors[0]).toMatchObject({
      message: 'cursor_expired',
      extensions: { code: 'CURSOR_EXPIRED' },
    });
    expect(await reader.next()).toMatchObject({ event: 'complete' });
  });

  it('DG-08: a client that disconnects leaks nothing', async () => {
    const reader = await fixture.stream(UPDATES);
    await until(() => fixture.streams.load.streams === 1);
    await reader[Symbol.asyncDispose]();
    await until(() => fixture.streams.load.streams === 0);
  });

  it('DG-08: a stop of the event source ends it without complete', async () => {
    await using reader = await fixture.stream(UPDATES);
    await until(() => fixture.streams.load.streams === 1);
    fixture.streams.stop();
    expect(await reader.next()).toBeUndefined();
  });

  it('D2-29 DG-15: it ends with its token without an error and without complete, so that clients reconnect', async () => {
    const token = fixture.newToken({ expiresAtMs: Date.now() + 300 });
    await using reader = await fixture.stream(UPDATES, { token });
    expect(await reader.next()).toBeUndefined();
    await until(() => fixture.streams.load.streams === 0);
    await until(() => fixture.watch.size === 0);
  });
});

describe('transaction over SSE', () => {
  const STATES = 'subscription ($id: ID!) { transaction(id: $id) { id status } }';

  it('D6-11: sends the current state at once, each change, and complete at Done', async () => {
    await fixture.notify('t', 1);
    await using reader = await fixture.stream(STATES, { variables: { id: 't' } });
    expect(await reader.nextJson()).toEqual({ data: { transaction: { id: 't', status: 'STARTED' } } });
    await fixture.notify('t', 2);
    expect(await reader.nextJson()).toEqual({ data: { transaction: { id: 't', status: 'IN_PROGRESS' } } });
    await fixture.notify('t', 3);
    expect(await reader.nextJson()).toEqual({ data: { transaction: { id: 't', status: 'DONE' } } });
    expect(await reader.next()).toMatchObject({ event: 'complete' });
    expect(await reader.next()).toBeUndefined();
  });

  it.each([
    [3, 'DONE'],
    [4, 'ERROR'],
  ])('D6-11: sends the state of a final transaction, then complete (status %i)', async (status, name) => {
    await fixture.notify('t', status);
    await using reader = await fixture.stream(STATES, { variables: { id: 't' } });
    expect(await reader.nextJson()).toEqual({ data: { transaction: { id: 't', status: name } } });
    expect(await reader.next()).toMatchObject({ event: 'complete' });
  });
});
