import { expect, it, vi } from 'vitest';
import { Portcullis as Client } from '../../client/src/index.ts';
import { startRelay } from '../support/console/relay.ts';
import { startOnRealServers } from '../support/harness.ts';
import { logged, notify, registered } from '../support/realtime/live.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { describeReal } from '../support/services/real.ts';
import { startInstance } from '../support/start/process.ts';

describeReal(['postgres', 'redis', 'kafka'], 'the client package over two gateways', () => {
  it('D6-10: yields each update once when the gateway of its subscription is killed', async () => {
    await using p = await startOnRealServers();
    const AUDIT_SPOOL_DIR = await temporaryFolder();
    await using gateway = await startInstance({ ...p.env, AUDIT_SPOOL_DIR, PORTCULLIS_ROLE: 'gateway' }, []);
    await using relay = await startRelay(gateway.baseUrl);
    const client = new Client({ baseUrl: relay.url, token: () => p.clientToken() });
    const ids = await registered(p, 4);
    const stopping = new AbortController();
    const cursors: string[] = [];
    const following = (async () => {
      for await (const { cursor } of client.updates({ after: '0', signal: stopping.signal })) cursors.push(cursor);
    })();
    const ended = expect(following).rejects.toBe('done');
    const [first = '', second = '', third = '', fourth = ''] = ids;
    await notify(p, first, 2);
    await vi.waitFor(() => expect(cursors).toHaveLength(1));
    const waiting = client.waitFor(second);
    await notify(p, second, 2);
    await gateway.kill('SIGKILL');
    await notify(p, third, 2);
    relay.lead(p.url);
    await notify(p, fourth, 2);
    await notify(p, second, 3);
    expect(await waiting).toMatchObject({ id: second, status: 'DONE' });
    await vi.waitFor(() => expect(cursors).toHaveLength(5));
    expect(cursors).toEqual(await logged(p));
    stopping.abort('done');
    await ended;
  });
});
