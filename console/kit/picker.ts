import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { html } from '../html.ts';
import { onSignOut } from '../remembered.ts';
import { Field, type FieldInput, inputOf } from './form.ts';
import { Id } from './text.ts';

/** Something that can be picked: its id, its name, and what tells it from others of that name. */
export interface Option {
  id: string;
  text: string;
  detail?: string | undefined;
}

/** Where options come from. */
export interface Source {
  /** Returns the first options whose names contain a text. */
  search(text: string, signal: AbortSignal): Promise<readonly Option[]>;
  /** Returns the option with an id; undefined where there is none. */
  find(id: string, signal: AbortSignal): Promise<Option | undefined>;
}

interface PickerInput extends FieldInput {
  /** The id that is picked; another text where none is. */
  value: string;
  source: Source;
  onChange(id: string, option?: Option): void;
  required?: boolean;
}

/** The text of a UUID. */
export const UUID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i;
const PAUSE_MS = 150;

/** Does something while a value is as it is, after a pause; what it has found is dropped once the value changes. */
function useLookup(key: unknown, look: ((signal: AbortSignal) => Promise<void>) | undefined, pauseMs = 0): void {
  useEffect(() => {
    if (!look) return;
    const looking = new AbortController();
    // Who may not read the list still types ids.
    const timer = setTimeout(() => look(looking.signal).catch(() => undefined), pauseMs);
    return () => {
      clearTimeout(timer);
      looking.abort();
    };
  }, [key]);
}

/** An input for the id of something that has a name: one searches by the name, or pastes the id; an unknown id stays. */
export function Picker({ label, hint, issue, failure, path = '', value, source, onChange, ...attributes }: PickerInput) {
  const list = useId();
  const [known, setKnown] = useState<Option>();
  const [options, setOptions] = useState<readonly Option[]>([]);
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const isKnown = known?.id === value && value !== '';
  const searched = isOpen && !UUID.test(value) ? value : undefined;
  const found = (option: Option | undefined, signal: AbortSignal) => {
    if (option && !signal.aborted) setKnown({ ...option, id: value });
  };
  useLookup(value, UUID.test(value) && !isKnown ? async (signal) => found(await source.find(value.toLowerCase(), signal), signal) : undefined);
  const search = async (signal: AbortSignal) => {
    const next = await source.search(isKnown ? '' : value.trim(), signal);
    if (signal.aborted) return;
    setOptions(next);
    setActive(0);
  };
  useLookup(isOpen && [searched, isKnown].join(), isOpen && (searched !== undefined || isKnown) ? search : undefined, PAUSE_MS);
  useEffect(() => box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }), [active, isOpen]);
  const isShown = isOpen && options.length > 0;
  const pick = (option: Option | undefined) => {
    if (!option) return;
    setKnown(option);
    setOpen(false);
    onChange(option.id, option);
  };
  const press = (event: KeyboardEvent) => {
    const { key } = event;
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (step !== undefined) {
      setOpen(true);
      if (isShown) setActive((active + step + options.length) % options.length);
    } else if (key === 'Enter' && isShown) pick(options[active]);
    else if (key === 'Escape' && isShown) setOpen(false);
    else return;
    event.preventDefault();
  };
  const type = (event: Event) => {
    setOpen(true);
    const typed = inputOf(event);
    onChange(UUID.test(typed.trim()) ? typed.trim() : typed);
  };
  const shownHint = isKnown && known.detail ? known.detail : hint;
  return html`<div class="picker" ref=${box} onFocusOut=${() => setOpen(false)}>
    <${Field} label=${label} hint=${shownHint} issue=${issue} failure=${failure} path=${path}>${(
      described: object,
    ) => html`<input ...${attributes} ...${described}
      role="combobox" aria-autocomplete="list" aria-expanded=${isShown} aria-controls=${list} aria-activedescendant=${isShown ? `${list}-${active}` : undefined}
      autocomplete="off" spellcheck="false" title=${isKnown ? value : undefined} value=${isKnown ? known.text : value}
      onInput=${type} onKeyDown=${press} onClick=${() => setOpen(true)} onFocus=${({ target }: Event) => (target as HTMLInputElement).select()} />`}<//>
    <ul role="listbox" id=${list} aria-label=${label} hidden=${!isShown}>${options.map(
      (option, at) => html`<li role="option" id=${`${list}-${at}`} key=${option.id} aria-selected=${at === active}
        onMouseDown=${(event: Event) => event.preventDefault()} onClick=${() => pick(option)}>${option.text}${option.detail && html`<small>${option.detail}</small>`}</li>`,
    )}</ul>
  </div>`;
}

/** What ids name, as far as it was looked up since the sign-in. */
const NAMES = new Map<string, Promise<Option | undefined>>();
onSignOut(() => NAMES.clear());

/** Returns the name of an id; undefined until it is known, and where there is none. */
export function useName(source: Source, id: string): string | undefined {
  const [known, setKnown] = useState<{ id: string; text: string | undefined }>();
  useEffect(() => {
    if (!UUID.test(id)) return;
    const found = NAMES.get(id) ?? source.find(id.toLowerCase(), new AbortController().signal).catch(() => undefined);
    NAMES.set(id, found);
    void found.then((option) => setKnown({ id, text: option?.text }));
  }, [id]);
  return known?.id === id ? known.text : undefined;
}

/** Returns the first options of a source, asked for again when the key changes. */
export function useFound(source: Source, key: string): readonly Option[] {
  const [found, setFound] = useState<readonly Option[]>([]);
  useLookup(key, async (signal) => setFound(await source.search('', signal)));
  return found;
}

/** An id by the name of what it names, as a chip. */
export function Named({ source, id, link }: { source: Source; id: string; link?: string }) {
  return html`<${Id} id=${id} link=${link} name=${useName(source, id)} />`;
}
