import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, it, vi } from 'vitest';
import { readConfig } from '../../src/platform/config/config.ts';
import { GROUPS } from '../../src/platform/config/variables.ts';
import { startedFolder } from '../support/start/folders.ts';
import { ROOT, startInstance } from '../support/start/process.ts';

const PACKAGES = join(ROOT, 'node_modules/@opentelemetry');
/** The files of the SDK that read variables for traces. */
const READERS = [
  'sdk-trace-base/build/src/config.js',
  'sdk-trace-base/build/src/utility.js',
  'sdk-trace-base/build/src/BatchSpanProcessor-shim.js',
  'otlp-exporter-base/build/src/configuration/otlp-node-http-env-configuration.js',
  'otlp-exporter-base/build/src/configuration/shared-env-configuration.js',
  'resources/build/src/detectors/EnvDetector.js',
];

it('the variables that are read are those that the SDK of OpenTelemetry knows for traces', () => {
  const text = READERS.map((file) => readFileSync(join(PACKAGES, file), 'utf8')).join('\n');
  const named =
    text.match(/(?<=['`])OTEL_[A-Z_]+[A-Z](?=['`])|OTEL_EXPORTER_OTLP_\$\{signalIdentifier\}_[A-Z_]+/g) ?? [];
  const known = new Set(named.map((name) => name.replace(/\$\{\w+\}/, 'TRACES')));
  expect(Object.keys(GROUPS.telemetry).toSorted()).toEqual([...known].toSorted());
});

it('other variables of OpenTelemetry are warned of by name, a slip of the pen with the name that is meant', () => {
  const { warnings } = readConfig({
    OTEL_PROPAGATORS: 'b3',
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_SERVICENAME: 'x',
    OTEL_BSP_MAX_QUEUE_SIZE: '10',
  });
  const list = 'docs/configuration.md#traces lists the OTEL_ variables that are';
  expect(warnings.toSorted()).toEqual([
    `OTEL_METRICS_EXPORTER is not read: ${list}`,
    `OTEL_PROPAGATORS is not read: ${list}`,
    'OTEL_SERVICENAME is unknown: did you mean OTEL_SERVICE_NAME?',
  ]);
});

it('endpoint, headers, compression, resource, sampler and limits are those of the variables, in a process of its own', async () => {
  const exports: { path: string | undefined; headers: IncomingHttpHeaders; text: string }[] = [];
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    exports.push({ path: req.url, headers: req.headers, text: gunzipSync(Buffer.concat(chunks)).toString() });
    res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await using folder = await startedFolder();
    await using instance = await startInstance({
      DATA_DIR: folder.path,
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${at}/custom/path`,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-one=1,x-two=2',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-two=traces%20two',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'none',
      OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=from%20attributes,deployment.environment.name=test',
      OTEL_TRACES_SAMPLER: 'always_on',
      OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '100',
      OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: '3',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1',
    });
    // The caller has decided against a trace, which `always_on` does not ask.
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const traceparent = `00-${traceId}-b7ad6b7169203331-00`;
    await fetch(`${instance.baseUrl}/v1/accounts`, { headers: { traceparent } });
    const ofRequest = await vi.waitFor(() => {
      const found = exports.find(({ text }) => text.includes(traceId));
      if (!found) throw new Error('no span yet');
      return found;
    });
    expect(ofRequest.path).toBe('/custom/path');
    expect(ofRequest.headers).toMatchObject({ 'x-one': '1', 'x-two': 'traces two', 'content-encoding': 'gzip' });
    const { resource, scopeSpans } = JSON.parse(ofRequest.text).resourceSpans[0];
    const attributes = Object.fromEntries(
      resource.attributes.map(({ key, value }: { key: string; value: object }) => [key, Object.values(value)[0]]),
    );
    expect(attributes).toMatchObject({ 'service.name': 'from attributes', 'deployment.environment.name': 'test' });
    expect(scopeSpans).toHaveLength(1);
    expect(scopeSpans[0].spans).toHaveLength(1);
    for (const { value } of scopeSpans[0].spans[0].attributes) {
      expect(String(value.stringValue ?? '').length).toBeLessThanOrEqual(3);
    }
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
