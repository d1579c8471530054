import { readGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';

/** Run as a process of its own, with the path of a gateway configuration as JSON: prints the milliseconds of CPU to read and check it. */
const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: reading JSON');
const from = process.cpuUsage();
readGatewayConfig(JSON.parse(given));
const { user, system } = process.cpuUsage(from);
process.stdout.write(JSON.stringify((user + system) / 1000));
