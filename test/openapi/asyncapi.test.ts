import { randomUUID } from 'node:crypto';
import specifications from '@asyncapi/specs';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { printedAsyncApi } from '../../scripts/asyncapi.ts';
import { EmbeddedLogReader } from '../../src/events/bus/embedded-bus.ts';
import { type IncomingMessage, isDeadLetterTopic, type OutgoingMessage } from '../../src/events/bus/event-bus.ts';
import { Replay, ReplayPositions } from '../../src/events/bus/replay.ts';
import { ALL_TOPICS, REFERENCE_KINDS, REFERENCE_TOPICS, TOPICS } from '../../src/events/bus/topics.ts';
import { parseReferenceChange } from '../../src/features/reference/reference.input.ts';
import { kindOfTopic, type ReferenceKind } from '../../src/features/reference/reference.rules.ts';
import { notificationInput, parseRegistration } from '../../src/features/transactions/notification.input.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { usePortcullis } from '../support/harness.ts';
import { committed, document, faultsOf, messageFaults, nameOf, target } from '../support/openapi/async-described.ts';
import { newFamily } from '../support/reference/fixture.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

describe('the AsyncAPI document', () => {
  it('equals what is generated from the schemas in the code', () => {
    expect(committed).toBe(printedAsyncApi());
  });

  it('is valid AsyncAPI 3.0', () => {
    // It brings the schema of schemas along.
    const ajv = new Ajv({ strict: false, allErrors: true, meta: false, validateSchema: false });
    addFormats.default(ajv);
    const validate = ajv.compile(JSON.parse(JSON.stringify(specifications.schemas['3.0.0'])));
    expect(validate(document) ? [] : validate.errors).toEqual([]);
  });

  it('has every topic, and every reference resolves', () => {
    expect(Object.keys(document.channels).sort()).toEqual(ALL_TOPICS.toSorted());
    for (const [topic, { address, messages }] of Object.entries(document.channels)) {
      expect(address).toBe(topic);
      for (const ref of Object.values(messages)) expect([ref, target(ref)]).toEqual([ref, expect.anything()]);
    }
    for (const { headers, payload } of Object.values(document.components.messages)) {
      for (const ref of [headers, payload]) expect([ref, target(ref)]).toEqual([ref, expect.anything()]);
    }
    const operated = Object.values(document.operations).map(({ channel }) => nameOf(channel));
    expect([...new Set(operated)].sort()).toEqual(ALL_TOPICS.toSorted());
  });
});

/** Whether the code reads a value as what the schema of this name is about. */
const readers: Record<string, (value: object) => boolean> = {
  Notification: (value) => notificationInput.safeParse(value).success,
  Registration: (value) => isRead(() => parseRegistration(Buffer.from(JSON.stringify(value)))),
  ...Object.fromEntries(
    REFERENCE_KINDS.map((kind) => [
      referenceName(kind),
      (value: object) => isRead(() => parseReferenceChange(kind, rowOf(kind).key, value)),
    ]),
  ),
};

/** The members of reference data that are read as null if they are not as described. */
const LENIENT = ['ReferenceNetworks.explorer_url', 'ReferenceCurrencies.name', 'ReferenceCurrencies.decimals'];

const family = newFamily();

/** A row of the family, as its owner writes it, and its key. */
function rowOf(kind: ReferenceKind): { key: string; value: object } {
  const { id, version, row } = family.version(kind, 1);
  return { key: id, value: { ...row, id, version: Number(version) } };
}

function referenceName(kind: string): string {
  return `Reference${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
}

function isRead(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch {
    return false;
  }
}

function registration(members: object = {}): object {
  const ids = { id: randomUUID(), node_id: family.ids.nodes };
  return { ...ids, collection: 'token_transactions', type: 1, asset_id: null, ...members };
}

describe.each(Object.entries(readers))('the schema %s and the parser in the code', (name, reads) => {
  const kind = REFERENCE_KINDS.find((known) => referenceName(known) === name);
  const good = kind ? rowOf(kind).value : name === 'Registration' ? registration() : notification();
  const { properties = {}, required = [] } = document.components.schemas[name] ?? {};
  const isValid = (value: object) => faultsOf(value, name).length === 0;

  it('the schema and the parser accept the same message, also with unknown members', () => {
    for (const value of [good, { ...good, unknown: [1] }]) expect([isValid(value), reads(value)]).toEqual([true, true]);
  });

  it.each(Object.keys(properties))(
    'the schema and the parser agree on %s when absent, null, and of another type',
    (member) => {
      for (const value of [undefined, null, {}, ['x']]) {
        const changed = JSON.parse(JSON.stringify({ ...good, [member]: value }));
        const isRead = isValid(changed) || LENIENT.includes(`${name}.${member}`);
        expect([value, isRead]).toEqual([value, reads(changed)]);
      }
      const isOptional = !required.includes(member);
      expect(reads(JSON.parse(JSON.stringify({ ...good, [member]: undefined })))).toBe(isOptional);
    },
  );
});

describe('the messages on the topics of a running instance', () => {
  const p = usePortcullis();
  const recorder = new Recorder();

  beforeAll(async () => {
    const { bus } = p.service.context;
    await recorder.follow(bus, [...ALL_TOPICS]);
    await notify();
    await migrate();
    await bus.publish([...references(), ...registrations()]);
    await bus.publish(tombstones());
    await replay();
    await bus.publish(poison());
    const consumed = poison().map(({ topic }) => `${topic}.dlq`);
    await vi.waitFor(
      () =>
        expect(new Set(recorder.messages.map(({ topic }) => topic))).toEqual(
          new Set([...ALL_TOPICS.filter((topic) => !isDeadLetterTopic(topic)), ...consumed]),
        ),
      { interval: 50 },
    );
  });

  async function notify(): Promise<void> {
    const { username, password } = p.webhook;
    const bodies = [
      notification(),
      notification({ id: p.demo.transactions.otc_transactions, status: 4, error: 'reverted', unknown: { a: [] } }),
      notification({ error: null, transaction_hash: null, gas_used: 0, created_at: '20261121 103000,5+0100' }),
    ].map((body) => JSON.stringify(body));
    bodies.push(
      JSON.stringify(notification({ gas_used: 7 })).replace('"gas_used":7', '"gas_used":18446744073709551615'),
    );
    for (const body of bodies) {
      const headers = { authorization: basic(username, password), 'content-type': 'application/json' };
      expect((await p.call('POST', '/v2/webhooks/custodial', { body, headers })).status).toBe(200);
    }
  }

  async function migrate(): Promise<void> {
    const token = await p.clientToken();
    for (const json of [
      { wallet_address: ' 0xA5C ', email: 'asyncapi@example.com' },
      { wallet_address: '0xa51', external_id: 'asyncapi-1' },
    ]) {
      expect((await p.call('POST', '/v2/users/migrate/with-wallet', { token, json })).status).toBe(201);
    }
  }

  const json = (topic: string, key: string, value: object) =>
    message(topic, key, { value: Buffer.from(JSON.stringify(value)) });

  function references(): OutgoingMessage[] {
    return REFERENCE_KINDS.map((kind) => json(`reference.${kind}`, rowOf(kind).key, rowOf(kind).value));
  }

  function tombstones(): OutgoingMessage[] {
    return REFERENCE_TOPICS.map((topic) => message(topic, randomUUID(), { value: null }));
  }

  function registrations(): OutgoingMessage[] {
    const value = registration({ node_id: p.demo.node_id, asset_id: p.demo.asset_id });
    return [json(TOPICS.registered, 'id' in value ? String(value.id) : '', value)];
  }

  async function replay(): Promise<void> {
    const { bus, database } = p.service.context;
    const parts = { bus, reader: new EmbeddedLogReader(database.db), positions: new ReplayPositions(database.db, '') };
    const again = new Replay(parts);
    const options = { signal: new AbortController().signal, onReplayed: () => undefined };
    for (const topic of [TOPICS.admin, TOPICS.user, TOPICS.registered]) {
      await again.run(await again.between(topic, 0, Date.now() + 60_000), options);
    }
  }

  /** What every consumed topic gets that is none of its messages, marked. */
  function poison(): OutgoingMessage[] {
    return ALL_TOPICS.filter((topic) => !isDeadLetterTopic(topic) && topic !== TOPICS.kycToken).map((topic) =>
      message(topic, randomUUID(), { value: Buffer.from([0x7b, 0xff]), headers: { poison: 'yes' } }),
    );
  }

  const isPoison = ({ topic, headers }: IncomingMessage) => headers.poison === 'yes' && !isDeadLetterTopic(topic);

  it.each(ALL_TOPICS.filter((topic) => topic !== `${TOPICS.kycToken}.dlq`))(
    'the messages on %s match their schema',
    (topic) => {
      const found = recorder.messages.filter((one) => one.topic === topic && !isPoison(one));
      expect(found.length).toBeGreaterThan(0);
      for (const one of found) expect([one.value?.toString(), messageFaults(one)]).toEqual([one.value?.toString(), []]);
      if (kindOfTopic(topic))
        expect(found.map(({ value }) => value === null)).toEqual(expect.arrayContaining([true, false]));
    },
  );

  it('messages that violate their schema are detected', () => {
    const bad = recorder.messages.filter(isPoison);
    expect(bad).not.toEqual([]);
    for (const one of bad) expect(messageFaults(one)).not.toEqual([]);
    const good = recorder.messages.find(({ topic }) => topic === TOPICS.admin);
    if (!good) throw new Error('there is one');
    const { 'event-id': _id, ...headers } = good.headers;
    expect(messageFaults({ ...good, headers })).toEqual([": must have required property 'event-id'"]);
    expect(messageFaults({ ...good, key: '' })).toHaveLength(1);
  });

  it('the messages include replayed ones', () => {
    const again = recorder.messages.filter(({ headers }) => headers['replayed-from'] !== undefined);
    expect([...new Set(again.map(({ topic }) => topic))].sort()).toEqual([
      TOPICS.admin,
      TOPICS.registered,
      TOPICS.user,
    ]);
  });
});
