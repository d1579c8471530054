import { RedisClient as Client, RedisCluster } from 'redis';

/** A channel to which a client listens. */
export interface RedisChannel {
  readonly name: string;
  listener(message: string): void;
}

/** Where a server is. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A connection of the client to one server. */
interface RedisNode {
  readonly isReady: boolean;
  sendCommand(args: string[]): Promise<unknown>;
  destroy(): void;
}

/** A client of the package `redis` that is connected: to a single server, or to the masters of a cluster. */
export interface RedisClient {
  /** The masters of the cluster; of a single server, none. */
  readonly members: readonly Address[];
  /** Sends a command to the server of a key. */
  send(key: string, args: string[]): Promise<unknown>;
  publish(message: string): Promise<unknown>;
  /** The connections; undefined for one that could not be made, or whose keys have no server that is known. */
  nodes(): readonly (RedisNode | undefined)[];
  /** Rejects if a server does not respond, or says that a slot has no master. */
  probe(node: RedisNode): Promise<void>;
  /** Returns a key for each server; each begins with `name`. */
  keys(name: string): Promise<string[]>;
  /** Ends all connections for good. */
  end(): void;
}

interface Opening {
  url: string;
  /** The member of the cluster that is asked; undefined means the server that the URL names. */
  member: Address | undefined;
  /** If it is given, the client only listens and publishes, and has one connection. */
  channel: RedisChannel | undefined;
  /** Called with the error of each connection that is lost. */
  onLost(error: unknown): void;
  /** Ends the client and every connection opened for it. */
  signal: AbortSignal;
}

type Settings = ReturnType<typeof settingsOf>;

const DEFAULT_PORT = 6_379;
const CONNECT_TIMEOUT_MS = 2_000;
/** Ends a handshake that a frozen server does not answer; this process may stand still for less. */
const SOCKET_TIMEOUT_MS = 10_000;
const HEALTH_KEY_ATTEMPTS = 1_000;

/**
 * Connects to Redis, and finds out whether it is a cluster. A connection that is lost is not made again: its commands
 * are refused at once. @throws an error of the client, also if it cannot connect to one master of a cluster.
 */
export async function openRedis(opening: Opening): Promise<RedisClient> {
  opening.signal.throwIfAborted();
  const settings = settingsOf(opening);
  const single = await openSingle(settings, opening);
  const reply = await single.sendCommand<unknown>(['HELLO']);
  if (typeof reply === 'object' && reply !== null && 'mode' in reply && reply.mode === 'cluster') {
    single.destroy();
    opening.signal.throwIfAborted();
    return openCluster(settings, opening);
  }
  const { channel, member } = opening;
  if (member) throw new Error('a member of the cluster has left it');
  if (channel) await single.subscribe(channel.name, channel.listener);
  return {
    members: [],
    send: (_key, args) => single.sendCommand(args),
    publish: (message) => single.sendCommand(['PUBLISH', channel?.name ?? '', message]),
    nodes: () => [single],
    probe: async (node) => {
      await node.sendCommand(['PING']).catch((error) => {
        // A server that cannot save its data refuses PING with the writes, and serves reads.
        if (!String(error).includes('MISCONF')) throw error;
      });
    },
    keys: async (name) => [name],
    end: () => single.destroy(),
  };
}

/** Returns what all connections have in common. */
function settingsOf({ url, member }: Opening) {
  const { socket, ...login } = Client.parseURL(url);
  if (!socket || !('host' in socket)) throw new Error('REDIS_URL names no host');
  return {
    root: member ?? { host: socket.host ?? '', port: socket.port ?? DEFAULT_PORT },
    tls: socket.tls === true,
    socket: { connectTimeout: CONNECT_TIMEOUT_MS, socketTimeout: SOCKET_TIMEOUT_MS, reconnectStrategy: false as const },
    client: {
      ...login,
      disableOfflineQueue: true,
      maintNotifications: 'disabled' as const,
      // A timer for each command would cost more than the command.
      commandOptions: { timeout: 0 },
    },
  };
}

async function openSingle({ root, tls, socket, client }: Settings, opening: Opening) {
  const { onLost, signal } = opening;
  const to = { ...socket, ...root };
  // Without a method for each command of Redis, of which the package would build a class.
  const single = new Client({ ...client, socket: tls ? { ...to, tls } : to });
  single.on('error', (error) => {
    if (!signal.aborted) onLost(error);
    // An invalid reply does not end the connection, though later replies would be matched to the wrong commands.
    single.destroy();
  });
  signal.addEventListener('abort', () => {
    // The client finishes an attempt to connect that has begun.
    single.on('connect', () => single.destroy());
    single.destroy();
  });
  return single.connect();
}

async function openCluster({ root, tls, socket, client }: Settings, opening: Opening): Promise<RedisClient> {
  const { channel, onLost, signal } = opening;
  // A server that does not know its own host has the host that was asked.
  const nodeAddressMap = (address: string): Address => {
    const colon = address.lastIndexOf(':');
    const host = address.slice(0, colon);
    return { host: ['', '?', 'null'].includes(host) ? root.host : host, port: Number(address.slice(colon + 1)) };
  };
  const options = {
    rootNodes: [{ socket: root }],
    defaults: { ...client, socket: { ...socket, tls } },
    minimizeConnections: channel !== undefined,
    nodeAddressMap,
    // The package compares options as JSON to use the class of all commands again, which takes 45 ms to build.
    toJSON: () => ({}),
  };
  const cluster = RedisCluster.factory({})(options);
  const nodes = () => {
    if (channel) return [cluster.pubSubNode?.client];
    const connections = cluster.masters.map(({ client }) => client);
    const slots: readonly unknown[] = cluster.slots;
    // The server that was asked may be the last to learn whose a slot is.
    return slots.includes(undefined) ? [...connections, undefined] : connections;
  };
  const end = () => {
    const before = nodes();
    const destroy = () => {
      for (const node of [...before, ...nodes()]) node?.destroy();
    };
    // The client finishes attempts to connect that have begun.
    cluster.on('node-connect', destroy);
    destroy();
    cluster.destroy();
  };
  cluster.on('error', () => undefined);
  cluster.on('node-error', (error, { host, port }: Address) => {
    if (!signal.aborted) onLost(error);
    cluster.nodeByAddress.get(`${host}:${port}`)?.client?.destroy();
  });
  signal.addEventListener('abort', end);
  await cluster.connect();
  if (cluster.masters.length === 0) throw new Error('the server has left its cluster');
  if (channel) await cluster.subscribe(channel.name, channel.listener);
  return {
    members: cluster.masters.map(({ address }) => nodeAddressMap(address)),
    send: (key, args) => cluster.sendCommand(key, false, args),
    publish: async (message) => cluster.pubSubNode?.client.publish(channel?.name ?? '', message),
    nodes,
    probe: async (node) => {
      const info = String(await node.sendCommand(['CLUSTER', 'INFO']));
      if (info.includes('cluster_state:ok') && info.includes('cluster_slots_assigned:16384')) return;
      throw new Error('some slots of the cluster have no server');
    },
    keys: async (name) => {
      const keys = new Map<unknown, string>();
      // A master with so few slots that it has none of so many keys is only probed.
      for (let number = 0; number < HEALTH_KEY_ATTEMPTS && keys.size < cluster.masters.length; number += 1) {
        const key = `${name}:{${number}}`;
        keys.set(await cluster.getNodeClientForKey(key, false), key);
      }
      return [...keys.values()];
    },
    end,
  };
}
