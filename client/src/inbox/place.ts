/** The distance in px between the panel and the edges of the viewport, and between the panel and the bell. */
const GAP = 8
/** If less than this height in px is left above and below the bell, the panel may cover the bell. */
const MIN_HEIGHT = 160

type Size = { width: number; height: number }
type Box = Size & { left: number; top: number }

/**
 * Computes a place for the panel, below or above the bell and within the viewport. All values are in px, relative to
 * the viewport.
 * @param panel the size that the panel needs to show its content
 * @param isRightToLeft whether the panel and the bell have the same left edge instead of the same right edge
 */
export function computePlace(bell: Box, panel: Size, viewport: Size, isRightToLeft: boolean): Box {
  const width = Math.min(panel.width, viewport.width - 2 * GAP)
  const preferred = isRightToLeft ? bell.left : bell.left + bell.width - width
  const left = clamp(preferred, GAP, viewport.width - GAP - width)

  const bellBottom = bell.top + bell.height
  const below = viewport.height - 2 * GAP - bellBottom
  const above = bell.top - 2 * GAP
  const isBelow = panel.height <= below || below >= above
  const space = isBelow ? below : above
  const room = viewport.height - 2 * GAP
  const height = Math.min(panel.height, space < MIN_HEIGHT ? room : space, room)
  const top = isBelow ? bellBottom + GAP : bell.top - GAP - height
  return { left, width, height, top: clamp(top, GAP, viewport.height - GAP - height) }
}

function clamp(value: number, min: number, max: number): number {
  return Math.max(min, Math.min(value, max))
}
