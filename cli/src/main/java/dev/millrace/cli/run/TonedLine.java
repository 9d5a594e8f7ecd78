package dev.millrace.cli.run;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** A line of the panel: pieces of text with tones, shown as colours where supported. */
record TonedLine(List<Piece> pieces) {
    /** Tone of a piece; its meaning is also in the text. */
    enum Tone {
        PLAIN,
        STRONG,
        FAINT,
        GOOD,
        LOOK,
        BAD
    }

    /** Text in one tone. */
    record Piece(String text, Tone tone) {}

    TonedLine {
        pieces = List.copyOf(pieces);
    }

    static TonedLine of(String text) {
        return of(text, Tone.PLAIN);
    }

    static TonedLine of(String text, Tone tone) {
        return new TonedLine(List.of(new Piece(text, tone)));
    }

    /** Appends a piece. */
    TonedLine and(String text, Tone tone) {
        List<Piece> more = new ArrayList<>(pieces);
        more.add(new Piece(text, tone));
        return new TonedLine(more);
    }

    TonedLine and(String text) {
        return and(text, Tone.PLAIN);
    }

    /** Its plain text. */
    String text() {
        return pieces.stream().map(Piece::text).collect(Collectors.joining());
    }

    /** Cuts the line to a width; a cut line ends in an ellipsis. */
    TonedLine cut(int width, Glyphs glyphs) {
        if (text().length() <= width) {
            return this;
        }
        List<Piece> kept = new ArrayList<>();
        int left = Math.max(0, width - 1);
        for (Piece piece : pieces) {
            String text = piece.text().substring(0, Math.min(left, piece.text().length()));
            left -= text.length();
            kept.add(new Piece(text, piece.tone()));
        }
        kept.add(new Piece(width < 1 ? "" : glyphs.cut(), Tone.PLAIN));
        return new TonedLine(kept);
    }
}
