import { Counter } from 'prom-client';
import { AppError } from '../errors/app-error.ts';
import type { Guard } from './guards.ts';

const OUTCOMES = ['passed', 'refused', 'failed'] as const;

/** The guards in their order, and how each has decided since the start; counting is one addition. */
export function countedGuards(named: Readonly<Record<string, Guard>>): {
  guards: readonly Guard[];
  decisions: Counter;
} {
  const all = Object.entries(named).map(([name, guard]) => ({ name, guard, passed: 0, refused: 0, failed: 0 }));
  const decisions = new Counter({
    name: 'portcullis_guard_decisions_total',
    help: 'Requests of clients that a guard has let pass or refused, or could not judge, by guard.',
    labelNames: ['guard', 'outcome'],
    registers: [],
    collect() {
      this.reset();
      for (const counts of all)
        for (const outcome of OUTCOMES) this.inc({ guard: counts.name, outcome }, counts[outcome]);
    },
  });
  const guards = all.map((counts): Guard => {
    const failed = (error: unknown): never => {
      counts[error instanceof AppError && error.status < 500 ? 'refused' : 'failed'] += 1;
      throw error;
    };
    return function counted(call) {
      let pending: void | Promise<void>;
      try {
        pending = counts.guard(call);
      } catch (error) {
        return failed(error);
      }
      const passed = () => {
        counts.passed += 1;
      };
      return pending ? pending.then(passed, failed) : passed();
    };
  });
  return { guards, decisions };
}
