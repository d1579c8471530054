import fc from 'fast-check';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { BoundHistogram } from '../../src/lib/fast/bound-histogram.ts';
import { BoundHistogram as HistogramOfPromClient } from './library/bound-histogram.ts';

const OPTIONS = { name: 'duration_seconds', help: 'How long it took.', labelNames: ['method', 'status'] } as const;

it('what a scrape reads is what prom-client itself writes, for durations of every length and label', async () => {
  const label = fc.constantFrom('GET', 'POST', 'a "quoted" one\n');
  const duration = fc.oneof(fc.constantFrom(0, 0.005, 0.01, 10, 10.001), fc.double({ min: 0, max: 20, noNaN: true }));
  const series = fc.array(fc.record({ method: label, status: label, durations: fc.array(duration) }));
  await fc.assert(
    fc.asyncProperty(series, async (given) => {
      const texts = [BoundHistogram, HistogramOfPromClient].map(async (Histogram) => {
        const registry = new Registry();
        const histogram = new Histogram(OPTIONS);
        registry.registerMetric(histogram);
        for (const { method, status, durations } of given) {
          for (const seconds of durations) histogram.bind({ method, status }).observe(seconds);
        }
        return samplesOf(await registry.metrics());
      });
      const [own, theirs] = await Promise.all(texts);
      expect(own).toEqual(theirs);
    }),
    { numRuns: 100 },
  );
});

/** The lines of a scrape in one order, each with its labels in one order: neither has a meaning. */
function samplesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.replace(/\{(.*)\}/, (_all, labels: string) => `{${labels.split(/,(?=\w+=)/).toSorted()}}`))
    .toSorted();
}
