import { request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { filePart, formHeaders, formOf, mapPart, operationsPart } from '../support/graphql/upload-requests.ts';
import { startOnRealServers } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';

const MEBIBYTE = 1024 ** 2;
const FILE_BYTES = 200 * MEBIBYTE;
/** What one upload may hold, at both ends: chunks on their way to the database, and those that V8 has not swept yet. */
const MOST_BYTES = 80 * MEBIBYTE;
const SAMPLE_EVERY_BYTES = 10 * MEBIBYTE;

describeReal(['postgres', 'redis', 'kafka'], 'a large upload', () => {
  it('DG-09: a file of 200 MB is stored in memory that does not grow with the file', async () => {
    await using p = await startOnRealServers();
    await p.service.context.migrationJobs.stop();
    const headers = formHeaders(await p.clientToken());
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const used = () => {
      collect();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const before = used();
    let most = 0;
    async function* form() {
      yield formOf([operationsPart, mapPart, filePart], '').subarray(0, -2);
      const rows = Buffer.alloc(64 * 1024, '0xbb,bob@example.com\n');
      for (let sent = 0; sent < FILE_BYTES; sent += rows.length) {
        if (sent % SAMPLE_EVERY_BYTES === 0) most = Math.max(most, used() - before);
        yield rows;
      }
      yield Buffer.from('\n\r\n--a-boundary--\r\n');
    }
    const answered = Promise.withResolvers<string>();
    const sent = request(`${p.url}/graphql`, { method: 'POST', agent: false, headers }, async (response) => {
      answered.resolve(String(Buffer.concat(await response.toArray())));
    });
    await pipeline(Readable.from(form()), sent);
    expect(JSON.parse(await answered.promise).data.result).toMatchObject({
      __typename: 'Migration',
      status: 'RUNNING',
    });
    process.stdout.write(`${JSON.stringify({ uploaded: FILE_BYTES, most_bytes: most })}\n`);
    expect(most).toBeLessThan(MOST_BYTES);
  });
});
