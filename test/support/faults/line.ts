import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster, ServerName } from './cluster.ts';
import type { Fault } from './faults.ts';
import { type Line, NAMES, type Network } from './network.ts';

const FOR_MS = 10_000;
const CUT_MS = 500;

/** The packets between the processes and a store are lost, late or blocked for ten seconds. */
export function badLine(name: ServerName, what: string, line: Omit<Line, 'port'>): Fault {
  return {
    name: `${name}: ${what}, for ${FOR_MS / 1_000} s`,
    run: async (cluster) => {
      const network = networkOf(cluster);
      network.set({ ...line, port: cluster.servers[name].proxy.port });
      await delay(FOR_MS);
      network.set(undefined);
    },
  };
}

/** The store's name leads to another address, and the former one is gone without a word: its connections hear nothing more. */
export function moved(name: ServerName): Fault {
  return {
    name: `${name}: its address changes, the former one is silent`,
    run: async (cluster) => {
      const network = networkOf(cluster);
      network.names.names.set(NAMES[name], network.otherAddress);
      network.set({ port: cluster.servers[name].proxy.port, gone: network.address });
      await delay(FOR_MS);
    },
  };
}

/** Every connection to the store is cut, and its name is answered late or with a wrong address for ten seconds. */
export function misnamed(name: ServerName, how: 'late' | 'wrong'): Fault {
  return {
    name: `${name}: cut, and its name is answered ${how === 'late' ? '3 s late' : 'with an address of nobody'}`,
    run: async (cluster) => {
      const { names, nowhere } = networkOf(cluster);
      const { proxy } = cluster.servers[name];
      const address = names.names.get(NAMES[name]) ?? '';
      if (how === 'late') names.delayMs = 3_000;
      else names.names.set(NAMES[name], nowhere);
      proxy.set('cut');
      await delay(CUT_MS);
      proxy.set('passing');
      await delay(FOR_MS);
      names.delayMs = 0;
      names.names.set(NAMES[name], address);
    },
  };
}

function networkOf({ network }: Cluster): Network {
  if (!network) throw new Error('the cluster has no network of its own');
  return network;
}
