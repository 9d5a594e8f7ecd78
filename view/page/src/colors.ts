// Okabe and Ito's colours, which people with any colour vision can tell apart, with a dash and a marker each, so that colour is never all there is.
const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#B0568B", "#A66F00", "#6A51A3", "#4D4D4D", "#8C1D18"];
const DARK = ["#56B4E9", "#E69F00", "#2FC79B", "#E49BC2", "#F0E442", "#FF8A4C", "#D0D0D0", "#B3A2F0"];
export const DASHES: number[][] = [[], [7, 4], [2, 3], [11, 3, 2, 3], [5, 2], [1, 2], [14, 4], [9, 2, 2, 2, 2, 2]];
/** More curves than these cannot be told apart in one chart. */
export const COLORS = LIGHT.length;

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function color(index: number): string {
  const palette = isDark() ? DARK : LIGHT;
  return palette[index % palette.length] as string;
}

export function dash(index: number): number[] {
  return DASHES[index % DASHES.length] as number[];
}

export function cssValue(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
