package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.List;

/**
 * Looks up embedding rows in every piece of the embedding, and selects the result of the piece that holds the token.
 *
 * @param ofPieces [rows, hidden] each; an arbitrary row for tokens of other pieces
 * @param rows     [rows, hidden]
 */
record EmbeddingLookup(List<Value> ofPieces, Value rows) {

    /** @param tokens int64 [rows] */
    static EmbeddingLookup append(Operators ops, WholeTensor embedding, List<Value> pieces, Value tokens) {
        List<Value> found = new ArrayList<>();
        int last = pieces.size() - 1;
        for (int i = 0; i <= last; i++) {
            found.add(ops.gather(pieces.get(i), within(ops, embedding, i, tokens)));
        }
        Value rows = found.get(last);
        for (int i = last - 1; i >= 0; i--) {
            rows = ops.where(ops.unsqueeze(isBefore(ops, tokens, embedding.firstRow(i + 1)), 1), found.get(i), rows);
        }
        return new EmbeddingLookup(found, rows);
    }

    /**
     * Indices within a piece; 0 for tokens of other pieces. An index beyond the last piece is kept and refused at run
     * time.
     */
    private static Value within(Operators ops, WholeTensor embedding, int piece, Value tokens) {
        Value first = ops.graph().scalar(0L);
        Value places = tokens;
        if (piece < embedding.pieces().size() - 1) {
            places = ops.where(isBefore(ops, tokens, embedding.firstRow(piece + 1)), places, first);
        }
        if (piece > 0) {
            long begin = embedding.firstRow(piece);
            places = ops.where(
                    isBefore(ops, places, begin),
                    first,
                    ops.sub(places, ops.graph().scalar(begin)));
        }
        return places;
    }

    private static Value isBefore(Operators ops, Value tokens, long row) {
        return ops.less(tokens, ops.graph().scalar(row));
    }
}
