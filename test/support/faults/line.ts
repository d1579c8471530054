import { setTimeout as delay } from 'node:timers/promises';
import type { Fault } from './faults.ts';
import type { Lab, ServerName } from './lab.ts';
import { type Line, NAMES, type Network } from './network.ts';

const FOR_MS = 10_000;
const CUT_MS = 500;

/** The packets between the processes and a store are lost, late or blocked for ten seconds. */
export function badLine(name: ServerName, what: string, line: Omit<Line, 'port'>): Fault {
  return {
    name: `${name}: ${what}, for ${FOR_MS / 1_000} s`,
    run: async (lab) => {
      const network = networkOf(lab);
      network.set({ ...line, port: lab.servers[name].proxy.port });
      await delay(FOR_MS);
      network.set(undefined);
    },
  };
}

/** The store's name leads to another address, and the former one is gone without a word: its connections hear nothing more. */
export function moved(name: ServerName): Fault {
  return {
    name: `${name}: its address changes, the former one is silent`,
    run: async (lab) => {
      const network = networkOf(lab);
      network.names.names.set(NAMES[name], network.otherAddress);
      network.set({ port: lab.servers[name].proxy.port, gone: network.address });
      await delay(FOR_MS);
    },
  };
}

/** Every connection to the store is cut, and its name is answered late or with a wrong address for ten seconds. */
export function misnamed(name: ServerName, how: 'late' | 'wrong'): Fault {
  return {
    name: `${name}: cut, and its name is answered ${how === 'late' ? '3 s late' : 'with an address of nobody'}`,
    run: async (lab) => {
      const { names, nowhere } = networkOf(lab);
      const { proxy } = lab.servers[name];
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

function networkOf({ network }: Lab): Network {
  if (!network) throw new Error('the laboratory has no network of its own');
  return network;
}
