import { describeMissing, provision } from './provision.ts';

/**
 * `npm run services`: starts the three servers, prints their addresses as shell variables, and stays until it is
 * interrupted. Ended in any other way, its watchdogs end the servers.
 */
async function main(): Promise<void> {
  const interrupted = Promise.withResolvers<void>();
  // Until the servers are up, an interrupt leaves them to the watchdogs.
  let onSignal = (): void => process.exit(130);
  process.on('SIGINT', () => onSignal());
  process.on('SIGTERM', () => onSignal());
  const services = await provision({ ...process.env, CI: undefined });
  if (services.missing.length > 0) {
    await services.stop();
    process.stderr.write(`Not to be had:\n${describeMissing(services.missing)}\n`);
    process.exitCode = 1;
    return;
  }
  const { postgres, redis, kafka } = services.addresses;
  print({ DATABASE_URL: postgres, REDIS_URL: redis, KAFKA_BROKERS: kafka });
  const awake = setInterval(() => undefined, 2 ** 30);
  onSignal = () => {
    clearInterval(awake);
    interrupted.resolve();
    onSignal = () => undefined;
  };
  await interrupted.promise;
  await services.stop();
  process.exit();
}

function print(variables: Record<string, string | undefined>): void {
  for (const [name, value = ''] of Object.entries(variables)) {
    const quoted = /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
    process.stdout.write(`export ${name}=${quoted}\n`);
  }
}

await main();
