import { expect, it } from 'vitest';
import type { Transactions } from '../../src/features/transactions/transactions.service.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import {
  ADMIN,
  assetAddress,
  delivery,
  eventsOf,
  type Fixture,
  mirrorOn,
  newAsset,
  parkedOf,
  rowOf,
  transactionOf,
  useMirror,
} from '../support/transactions/fixture.ts';
import { watchedDb } from '../support/transactions/watched-db.ts';

class Cut extends Error {}

interface Scene {
  id: string;
  assetId: string;
}

interface Scenario {
  /** What has happened before, undisturbed. */
  before(fixture: Fixture, scene: Scene): Promise<void>;
  /** What is cut, and then comes again. */
  step(mirror: Transactions, fixture: Fixture, scene: Scene): Promise<unknown>;
}

const done = (id: string) => [
  delivery({ id, status: 1 }),
  delivery({ id, status: 3, second: 3, contract_address: '0xc', gas_used: 3 }),
];

const registered = (fixture: Fixture, { id, assetId }: Scene) => transactionOf(fixture, { id, assetId });

const scenarios: Record<string, Scenario> = {
  'a notification': {
    before: async (fixture, scene) => void (await fixture.mirror.register(registered(fixture, scene))),
    step: (mirror, _stand, { id }) => mirror.applyBatch(ADMIN, done(id)),
  },
  'a notification that is parked': {
    before: async () => undefined,
    step: (mirror, _stand, { id }) => mirror.applyBatch(ADMIN, done(id)),
  },
  'a registration with parked notifications': {
    before: async (fixture, { id }) => void (await fixture.mirror.applyBatch(ADMIN, done(id))),
    step: (mirror, fixture, scene) => mirror.register(registered(fixture, scene)),
  },
  'a registration by the owner that moves a transaction': {
    before: async (fixture, scene) => {
      await fixture.mirror.register({ ...registered(fixture, scene), nodeId: fixture.nodeIds[1], assetId: null });
      await fixture.mirror.applyBatch(ADMIN, done(scene.id));
    },
    step: (mirror, fixture, scene) => mirror.registerByOwner(registered(fixture, scene)),
  },
};

/** A cut before any statement (of every `stride`th), or before the commit, and a repeat leave what one undisturbed run leaves. */
export function cutContract(open: () => Promise<Database>, stride = 1): void {
  const fixture = useMirror(open);

  it.each(Object.entries(scenarios).map(([name, scenario], turn) => [name, scenario, turn] as const))(
    'D6-02 D6-17 D6-20: %s, interrupted at any statement and repeated, ends as if delivered once',
    async (_name, scenario, turn) => {
      const uncut = await endOf(fixture, scenario, Number.POSITIVE_INFINITY);
      let place = 1 + (turn % stride);
      for (let isCut = true; isCut; place += isCut ? stride : 0) {
        const cut = await endOf(fixture, scenario, place);
        expect(cut.end).toEqual(uncut.end);
        isCut = cut.isCut;
      }
      // Behind at least the two locks, one read, one write and the commit.
      expect(place).toBeGreaterThan(5);
    },
  );
}

async function endOf(fixture: Fixture, scenario: Scenario, place: number) {
  const { id } = transactionOf(fixture);
  const scene = { id, assetId: await newAsset(fixture) };
  await scenario.before(fixture, scene);
  let left = place;
  const cut = () => {
    left -= 1;
    if (left === 0) throw new Cut('cut');
  };
  const before = await dump(fixture, scene);
  let isCut = false;
  try {
    await scenario.step(mirrorOn(watchedDb(fixture.db, { statement: cut, commit: cut })), fixture, scene);
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    isCut = true;
    expect(await dump(fixture, scene)).toEqual(before);
  }
  await scenario.step(fixture.mirror, fixture, scene);
  const once = await dump(fixture, scene);
  await scenario.step(fixture.mirror, fixture, scene);
  expect(await dump(fixture, scene)).toEqual(once);
  return { isCut, end: withoutIds(once) };
}

async function dump(fixture: Fixture, { id, assetId }: Scene) {
  return {
    row: await rowOf(fixture, id),
    events: await eventsOf(fixture, id),
    parked: await parkedOf(fixture, id),
    address: await assetAddress(fixture, assetId),
  };
}

function withoutIds({ row, events, ...rest }: Awaited<ReturnType<typeof dump>>) {
  return {
    ...rest,
    row: row && { ...row, id: '', asset_id: '' },
    events: events.map((event) => ({
      ...event,
      seq: '',
      correlation_id: '',
      transaction: { ...event.transaction, id: '' },
    })),
  };
}
