package dev.millrace.report;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Font;
import java.awt.FontMetrics;
import java.awt.Graphics2D;
import java.awt.RenderingHints;
import java.awt.geom.Line2D;
import java.awt.image.BufferedImage;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.knowm.xchart.style.markers.Marker;

/** The names of a picture's curves, in rows below all of its panels: each once, and over no curve. */
final class PictureKey {
    private static final Font FONT = new Font(Font.SANS_SERIF, Font.PLAIN, 13);
    private static final int ROW = 24;
    private static final int MARGIN = 20;
    private static final int LINE = 34;
    private static final int GAP = 8;
    private static final int BETWEEN = 26;
    private static final int MARKER = 8;

    /** How a curve is called and drawn; a curve without a marker is a reference. */
    record Entry(String name, Color colour, BasicStroke stroke, Optional<Marker> marker) {}

    private record Placed(Entry entry, int x, int row) {}

    private final List<Placed> placed = new ArrayList<>();
    private final int height;

    /** @param width of the picture, in which the entries stand */
    PictureKey(List<Entry> entries, int width) {
        Graphics2D paper = new BufferedImage(1, 1, BufferedImage.TYPE_INT_RGB).createGraphics();
        FontMetrics metrics = paper.getFontMetrics(FONT);
        int x = MARGIN;
        int row = 0;
        for (Entry entry : entries) {
            int wide = LINE + GAP + metrics.stringWidth(entry.name());
            if (x > MARGIN && x + wide > width - MARGIN) {
                x = MARGIN;
                row++;
            }
            placed.add(new Placed(entry, x, row));
            x += wide + BETWEEN;
        }
        paper.dispose();
        this.height = entries.isEmpty() ? 0 : (row + 1) * ROW + GAP;
    }

    /** Of all its rows; 0 without an entry. */
    int height() {
        return height;
    }

    /** Draws it, with its upper edge at {@code top}. */
    void draw(Graphics2D paper, int top) {
        paper.setFont(FONT);
        paper.setRenderingHint(RenderingHints.KEY_ANTIALIASING, RenderingHints.VALUE_ANTIALIAS_ON);
        paper.setRenderingHint(RenderingHints.KEY_TEXT_ANTIALIASING, RenderingHints.VALUE_TEXT_ANTIALIAS_ON);
        for (Placed each : placed) {
            int y = top + each.row() * ROW + ROW / 2;
            paper.setColor(each.entry().colour());
            paper.setStroke(each.entry().stroke());
            paper.draw(new Line2D.Double(each.x(), y, each.x() + LINE, y));
            each.entry().marker().ifPresent(marker -> marker.paint(paper, each.x() + LINE / 2.0, y, MARKER));
            paper.setColor(Color.BLACK);
            paper.drawString(each.entry().name(), each.x() + LINE + GAP, y + 5);
        }
    }
}
