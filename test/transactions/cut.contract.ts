import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Transactions } from '../../src/features/transactions/transactions.service.ts';
import type { Database } from '../../src/platform/database/database.ts';
import {
  ADMIN,
  assetAddress,
  delivery,
  eventsOf,
  mirrorOn,
  newAsset,
  parkedOf,
  rowOf,
  type Stand,
  standOn,
  transactionOf,
} from '../support/transactions/stand.ts';
import { watchedDb } from '../support/transactions/watched-db.ts';

class Cut extends Error {}

interface Scene {
  id: string;
  assetId: string;
}

interface Scenario {
  /** What has happened before, undisturbed. */
  before(stand: Stand, scene: Scene): Promise<void>;
  /** What is cut, and then comes again. */
  step(mirror: Transactions, stand: Stand, scene: Scene): Promise<unknown>;
}

const done = (id: string) => [
  delivery({ id, status: 1 }),
  delivery({ id, status: 3, second: 3, contract_address: '0xc', gas_used: 3 }),
];

const registered = (stand: Stand, { id, assetId }: Scene) => transactionOf(stand, { id, assetId });

const scenarios: Record<string, Scenario> = {
  'a notification': {
    before: async (stand, scene) => void (await stand.mirror.register(registered(stand, scene))),
    step: (mirror, _stand, { id }) => mirror.applyBatch(ADMIN, done(id)),
  },
  'a notification that is parked': {
    before: async () => undefined,
    step: (mirror, _stand, { id }) => mirror.applyBatch(ADMIN, done(id)),
  },
  'a registration with parked notifications': {
    before: (stand, { id }) => stand.mirror.applyBatch(ADMIN, done(id)),
    step: (mirror, stand, scene) => mirror.register(registered(stand, scene)),
  },
  'a registration by the owner that moves a transaction': {
    before: async (stand, scene) => {
      await stand.mirror.register({ ...registered(stand, scene), nodeId: stand.nodeIds[1], assetId: null });
      await stand.mirror.applyBatch(ADMIN, done(scene.id));
    },
    step: (mirror, stand, scene) => mirror.registerByOwner(registered(stand, scene)),
  },
};

/** A cut before any statement (of every `stride`th), or before the commit, and a repeat leave what one undisturbed run leaves. */
export function cutContract(open: () => Promise<Database>, stride = 1): void {
  let stand: Stand;

  beforeAll(async () => {
    stand = await standOn(await open());
  });

  afterAll(() => stand.database[Symbol.asyncDispose]());

  it.each(Object.entries(scenarios).map(([name, scenario], turn) => [name, scenario, turn] as const))(
    'D6-02 D6-17 D6-20: %s, interrupted at any statement and repeated, ends as if delivered once',
    async (_name, scenario, turn) => {
      const uncut = await endOf(stand, scenario, Number.POSITIVE_INFINITY);
      let place = 1 + (turn % stride);
      for (let isCut = true; isCut; place += isCut ? stride : 0) {
        const cut = await endOf(stand, scenario, place);
        expect(cut.end).toEqual(uncut.end);
        isCut = cut.isCut;
      }
      // Behind at least the two locks, one read, one write and the commit.
      expect(place).toBeGreaterThan(5);
    },
  );
}

async function endOf(stand: Stand, scenario: Scenario, place: number) {
  const { id } = transactionOf(stand);
  const scene = { id, assetId: await newAsset(stand) };
  await scenario.before(stand, scene);
  let left = place;
  const cut = () => {
    left -= 1;
    if (left === 0) throw new Cut('cut');
  };
  const before = await dump(stand, scene);
  let isCut = false;
  try {
    await scenario.step(mirrorOn(watchedDb(stand.db, { statement: cut, commit: cut })), stand, scene);
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    isCut = true;
    expect(await dump(stand, scene)).toEqual(before);
  }
  await scenario.step(stand.mirror, stand, scene);
  const once = await dump(stand, scene);
  await scenario.step(stand.mirror, stand, scene);
  expect(await dump(stand, scene)).toEqual(once);
  return { isCut, end: withoutIds(once) };
}

async function dump(stand: Stand, { id, assetId }: Scene) {
  return {
    row: await rowOf(stand, id),
    events: await eventsOf(stand, id),
    parked: await parkedOf(stand, id),
    address: await assetAddress(stand, assetId),
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
