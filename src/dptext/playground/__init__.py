"""The playground: previews of a text by each release method, in the browser."""
