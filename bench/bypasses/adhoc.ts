import { boundOf, measurePairs } from '/work/wt/lead/bench/bypasses/measure.ts';
import { SCENES } from '/work/wt/lead/bench/bypasses/scenes.ts';

const [, , scene, ownMain, otherMain, pairs = '30'] = process.argv;
const r = await measurePairs(
  (SCENES as any)[scene],
  { own: { main: ownMain }, other: { main: otherMain } },
  Number(pairs),
);
const med = (a: number[]) => a.toSorted((x, y) => x - y)[Math.floor((a.length - 1) / 2)];
console.log(
  scene,
  'own',
  med(r.map((x) => x.own)).toFixed(1),
  'other',
  med(r.map((x) => x.other)).toFixed(1),
  'other-own',
  boundOf(r.map((x) => x.other - x.own)),
  'own-other',
  boundOf(r.map((x) => x.own - x.other)),
);
