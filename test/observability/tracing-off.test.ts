import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { silentLog } from '../../src/lib/log.ts';
import { readConfig, type TracingConfig } from '../../src/platform/config/config.ts';
import { OtelTracer } from '../../src/platform/telemetry/otel-tracer.ts';
import { startPortcullis } from '../support/harness.ts';
import { startCollector } from '../support/observability/collector.ts';
import { scrape } from '../support/observability/scrape.ts';
import { ROOT } from '../support/start/process.ts';

/** More than the queue and what is on its way. */
const SPANS = 6_000;

const LOADED = `
  import { registerHooks } from 'node:module';
  const loaded = [];
  registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
  await import('./src/app/service.ts');
  const { openTracing } = await import('./src/platform/telemetry/open-tracing.ts');
  await using stack = new AsyncDisposableStack();
  await openTracing(undefined, { log: undefined, version: '' }, stack);
  process.stdout.write(JSON.stringify([loaded.length > 100, loaded.filter((url) => /@opentelemetry.(?!api.)/.test(url))]));
`;

it('without an endpoint only the OpenTelemetry API is loaded, which the metrics library needs', () => {
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', LOADED];
  expect(JSON.parse(execFileSync(process.execPath, flags, { cwd: ROOT, encoding: 'utf8' }))).toEqual([true, []]);
});

it('a collector that rejects or does not respond delays no request and no shutdown, and lost spans are counted', async () => {
  await using collector = await startCollector();
  collector.mood = 'refusing';
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void warnings.push(message) };
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '20' };
  const p = await startPortcullis({ env, overrides: { log } });
  const token = await p.clientToken();
  const lost = async () => (await scrape(p.service)).value('portcullis_spans_exported_total', { outcome: 'lost' });
  await expect.poll(lost).toBeGreaterThan(0);
  expect(warnings).toContain('trace collector rejects spans; dropping them');
  collector.mood = 'silent';
  const before = collector.requests;
  const answers = await Promise.all(Array.from({ length: 60 }, () => p.call('GET', '/v1/accounts', { token })));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  await expect.poll(() => collector.requests).toBeGreaterThan(before);
  await p[Symbol.asyncDispose]();
});

it.each(['silent', 'cutting'] as const)(
  'with a %s collector a bounded number of spans is queued, and every span is counted as lost',
  async (mood) => {
    await using collector = await startCollector();
    collector.mood = mood;
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '10' };
    const config = readConfig(env).config.tracing as TracingConfig;
    const told = { taken: 0, refused: 0, dropped: 0 };
    const tracer = new OtelTracer(config, '0', (spans, outcome) => {
      told[outcome] += spans;
    });
    for (let at = 0; at < SPANS; at += 1) {
      tracer.start('span', { kind: 'internal' }).end();
      if (at % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await tracer.stop();
    await collector[Symbol.asyncDispose]();
    await expect.poll(() => told.refused + told.dropped).toBe(SPANS);
    expect(told.taken).toBe(0);
    // The queue and what is on its way.
    expect(told.refused).toBeGreaterThan(0);
    expect(told.refused).toBeLessThanOrEqual(2_048 + 3 * 512);
  },
);
