// A rollout as text next to its token ids, coloured by a number or a decision about each token; what the environment
// wrote stands apart.
import { useState } from "preact/hooks";
import { isDark } from "../colors";
import { number } from "../numbers";

export const WAYS = [
  ["ratio", "ratio, proximal to behavior"],
  ["mask", "tokens trained on"],
  ["version", "version that sampled it"],
  ["entropy", "entropy"],
] as const;

interface Token {
  id: number;
  text: string;
  inPrompt: boolean;
  isPolicy: boolean;
  isLeft: boolean;
  speaker: string;
  version: number | null;
  behavior: number | null;
  proximal: number | null;
  old: number | null;
  entropy: number | null;
  weight: number | null;
}

function tokens(data: any): Token[] {
  const none = { version: null, behavior: null, proximal: null, old: null, entropy: null, weight: null };
  const span = (spans: any[] | undefined, t: number) => spans?.find(([, from, to]) => from <= t && t < to)?.[0] ?? null;
  return [
    ...(data.prompt_ids ?? []).map((id: number, t: number) => ({ id, text: data.prompt_tokens?.[t] ?? "", inPrompt: true, isPolicy: false, isLeft: false, speaker: "prompt", ...none })),
    ...(data.ids ?? []).map((id: number, t: number) => ({
      id,
      text: data.tokens?.[t] ?? "",
      inPrompt: false,
      isPolicy: data.mask?.[t] === 1,
      isLeft: data.left ? data.left[t] === 1 : false,
      speaker: span(data.speakers, t) ?? "",
      version: span(data.versions, t),
      behavior: data.behavior?.[t] ?? null,
      proximal: data.proximal?.[t] ?? null,
      old: data.old?.[t] ?? null,
      entropy: data.entropies?.[t] ?? null,
      weight: data.weights?.[t] ?? null,
    })),
  ];
}

/** Blue below 0, orange above, deeper towards 1. */
function diverging(value: number): string {
  const depth = Math.min(1, Math.abs(value));
  const hue = value < 0 ? (isDark() ? "86,180,233" : "0,114,178") : isDark() ? "230,159,0" : "213,94,0";
  return `rgba(${hue},${(depth * (isDark() ? 0.55 : 0.45)).toFixed(3)})`;
}

function ground(token: Token, way: string, versions: number[], most: number): string {
  if (token.inPrompt || !token.isPolicy) {
    return "transparent";
  }
  if (way === "ratio") {
    return token.proximal === null || token.behavior === null ? "transparent" : diverging((token.proximal - token.behavior) / Math.log(2));
  }
  if (way === "mask") {
    return token.isLeft ? diverging(-0.6) : diverging(0.8);
  }
  if (way === "version") {
    return token.version === null ? "transparent" : diverging(versions.length < 2 ? -0.4 : (2 * versions.indexOf(token.version)) / (versions.length - 1) - 1);
  }
  return token.entropy === null ? "transparent" : diverging(token.entropy / Math.max(1e-9, most));
}

export function Tokens({ data, way, onWay }: { data: any; way: string; onWay: (way: string) => void }) {
  const all = tokens(data);
  const [at, setAt] = useState<number | null>(null);
  const versions = [...new Set(all.map((t) => t.version).filter((v): v is number => v !== null))].sort((a, b) => a - b);
  const most = all.reduce((m, t) => Math.max(m, t.entropy ?? 0), 0);
  const chosen = at === null ? undefined : all[at];
  const has = (name: string) => name !== "entropy" || most > 0;
  return (
    <figure class="tokens">
      {data.text !== undefined && (
        <dl class="read">
          <dt>prompt</dt>
          <dd>{data.prompt_text}</dd>
          <dt>response</dt>
          <dd>{data.text}</dd>
        </dl>
      )}
      <p>
        <label>
          coloured by{" "}
          <select value={way} onChange={(e) => onWay(e.currentTarget.value)}>
            {WAYS.map(([key, title]) => (
              <option key={key} value={key} disabled={!has(key)}>
                {title}
                {has(key) ? "" : " (this run does not score it)"}
              </option>
            ))}
          </select>
        </label>
      </p>
      <p class="legend">
        {way === "ratio" && "blue: less likely than when sampled, orange: more likely; darkest at half and double"}
        {way === "mask" && "blue: trained on; orange and struck through: masked"}
        {way === "mask" && data.decided_anew && `; as assembled: at its step the learner decided again and trained on ${data.trained_tokens} of them; the log does not record which`}
        {way === "version" && `versions ${versions.join(", ")}, the oldest blue`}
        {way === "entropy" && `darkest at ${number(most)} nats`}
        {"; italic and dotted: not written by the policy"}
      </p>
      <div class="text" role="list" aria-label="tokens">
        {all.map((token, i) => (
          <span
            key={i}
            role="listitem"
            tabIndex={0}
            class={`token${token.inPrompt || !token.isPolicy ? " other" : ""}${token.isPolicy && data.left && !token.isLeft ? " masked" : ""}${at === i ? " chosen" : ""}`}
            style={{ background: ground(token, way, versions, most) }}
            onMouseEnter={() => setAt(i)}
            onFocus={() => setAt(i)}
            title={`${token.speaker} token ${token.id}`}
          >
            <span class="word">{token.text === "" ? "·" : token.text.replaceAll("\n", "⏎")}</span>
            <span class="id">{token.id}</span>
          </span>
        ))}
      </div>
      <p class="readout">
        {chosen ? (
          <>
            <span>
              token <b>{chosen.id}</b> {JSON.stringify(chosen.text)}
            </span>
            <span>{chosen.speaker}</span>
            {chosen.version !== null && (
              <span>
                version <b>{chosen.version}</b>
              </span>
            )}
            {chosen.behavior !== null && (
              <span>
                behavior <b>{number(chosen.behavior)}</b>
              </span>
            )}
            {chosen.old !== null && (
              <span>
                old <b>{number(chosen.old)}</b>
              </span>
            )}
            {chosen.proximal !== null && (
              <span>
                proximal <b>{number(chosen.proximal)}</b>
              </span>
            )}
            {chosen.proximal !== null && chosen.behavior !== null && (
              <span>
                ratio <b>{number(Math.exp(chosen.proximal - chosen.behavior))}</b>
              </span>
            )}
            {chosen.entropy !== null && (
              <span>
                entropy <b>{number(chosen.entropy)}</b>
              </span>
            )}
            {chosen.weight !== null && (
              <span>
                weight <b>{number(chosen.weight)}</b>
              </span>
            )}
            {chosen.isPolicy && data.left && <span>{chosen.isLeft ? "trained on" : `masked${data.masked_by ? ` by ${data.masked_by}` : ""}`}</span>}
          </>
        ) : (
          <span class="where">point at a token, or reach it with Tab</span>
        )}
      </p>
    </figure>
  );
}
