update dalsegno.erasures set covers = 20261125161000, looked_again_at = now() where ended_at is not null;
