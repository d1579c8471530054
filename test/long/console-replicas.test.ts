import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { RevokeSessionsDocument, SupervisorsDocument } from '../graphql/generated/graphql.ts';
import {
  goTo,
  idsOf,
  openConsole,
  SOON,
  shown,
  signIn,
  useConsole,
  waitForUpdates,
} from '../support/console/console-page.ts';
import { type Relay, startRelay } from '../support/console/relay.ts';
import { operate } from '../support/graphql/administration.ts';
import { startOnRealServers } from '../support/harness.ts';
import { notify, registered } from '../support/realtime/live.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { describeReal } from '../support/services/real.ts';
import { type Running, startInstance } from '../support/start/process.ts';

const p = useConsole(() => startOnRealServers({ env: { CONSOLE: 'on' } }));

/** Starts a gateway beside the other one, as a process of its own, and a way to it. */
async function secondGateway(): Promise<{ gateway: Running; relay: Relay } & AsyncDisposable> {
  const spool = await temporaryFolder();
  const gateway = await startInstance({ ...p.env, AUDIT_SPOOL_DIR: spool, PORTCULLIS_ROLE: 'gateway' }, []);
  const relay = await startRelay(gateway.baseUrl);
  return {
    gateway,
    relay,
    [Symbol.asyncDispose]: async () => {
      await relay[Symbol.asyncDispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

async function ids(page: Page, count: number): Promise<string[]> {
  return (await idsOf(page)).slice(0, count).toSorted();
}

describeReal(['chromium', 'postgres', 'redis', 'kafka'], 'the console on two gateways', () => {
  it('shows that a login was revoked through another gateway; after its gateway dies the live list has no gap and no duplicate', async () => {
    await using two = await secondGateway();
    const { gateway, relay } = two;
    await using open = await openConsole(relay);
    const { page } = open;
    await signIn(page, p.demo);
    const token = await p.clientToken();
    const { supervisors } = await operate(p, token, SupervisorsDocument, {});
    await operate(p, token, RevokeSessionsDocument, { supervisorId: supervisors.edges[0]?.node.id ?? '' });
    await page.getByText('Your session was revoked or has expired').waitFor();
    await page.getByRole('heading', { name: 'Sign in to Portcullis' }).waitFor();

    const all = await registered(p, 7);
    await signIn(page, p.demo);
    await goTo(page, '#/transactions');
    await expect.poll(() => shown(page, '.link'), SOON).toMatch(/^Live/);
    for (const id of all.slice(0, 2)) await notify(p, id, 2);
    await waitForUpdates(page, 2);
    await expect.poll(() => ids(page, 2), SOON).toEqual(all.slice(0, 2).toSorted());
    await gateway.kill('SIGKILL');
    await page.getByText('Connection lost. Next attempt at').waitFor();
    for (const id of all.slice(2, 5)) await notify(p, id, 2);
    relay.lead(p.url);
    await waitForUpdates(page, 5);
    await expect.poll(() => ids(page, 5), SOON).toEqual(all.slice(0, 5).toSorted());
    for (const id of all.slice(5)) await notify(p, id, 2);
    await waitForUpdates(page, 7);
    await expect.poll(() => ids(page, 7), SOON).toEqual(all.toSorted());
  });
});
