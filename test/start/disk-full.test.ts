import { cp } from 'node:fs/promises';
import { basename } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { emptyFolder, startedFolder } from '../support/start/folders.ts';
import { acknowledgedIn, loadUntilDeath, lossesAfterRestart, NO_LOSSES, prepare } from '../support/start/kills.ts';
import { startInstance } from '../support/start/process.ts';
import { smallDisk, whyNoSmallDisk } from '../support/start/small-disk.ts';

const MIB = 1024 * 1024;
const DISK_BYTES = 160 * MIB;
/** Less than a segment of the write-ahead log and some rows; more than none, so that most writes would still succeed. */
const LEFT_BYTES = 12 * MIB;

const reason = whyNoSmallDisk();

describe.skipIf(reason !== undefined)(`an embedded instance whose disk is full${reason ? ` [${reason}]` : ''}`, () => {
  it('7.3-01: rejects what it cannot store, recovers when there is space, and has lost nothing acknowledged', async () => {
    await using folder = await startedFolder();
    await using spool = await emptyFolder();
    const told = await prepare(folder.path);
    await using disk = await smallDisk(DISK_BYTES);
    await cp(folder.path, disk.path, { recursive: true });
    const env = { DATA_DIR: disk.inside, AUDIT_SPOOL_DIR: spool.path };
    await using instance = await startInstance(env, undefined, disk.through);
    const load = loadUntilDeath(instance.baseUrl, told);
    const acknowledged = () => acknowledgedIn(told);
    const health = async () => (await fetch(`${instance.adminUrl}/readyz`)).status;

    await vi.waitFor(() => expect(acknowledged()).toBeGreaterThan(20));
    await disk.fill(LEFT_BYTES);
    await vi.waitFor(async () => expect(await health()).toBe(503));
    // What was on its way by then may be taken.
    const sent = told.notifications.length;
    await vi.waitFor(() => expect(told.notifications.length).toBeGreaterThan(sent + 60));
    expect(told.notifications.slice(sent).filter(({ isAcknowledged }) => isAcknowledged)).toEqual([]);

    const before = acknowledged();
    await disk.empty();
    await vi.waitFor(async () => expect(await health()).toBe(200));
    await vi.waitFor(() => expect(acknowledged()).toBeGreaterThan(before + 20));
    await instance.kill('SIGKILL');
    await load;
    await using after = await emptyFolder();
    // The socket of the killed instance cannot be copied.
    await cp(disk.path, after.path, { recursive: true, filter: (path) => basename(path) !== 'run' });
    const losses = await lossesAfterRestart(after.path, told, { AUDIT_SPOOL_DIR: spool.path });
    expect(losses).toEqual(NO_LOSSES);
  });
});
